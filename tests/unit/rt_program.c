/* pn_main from its options to its last line, on the program of rt_toy.h, a child process a case. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt_toy.h"

#include <cmocka.h>
#include <jansson.h>

static char folder[64];
static char out[8192], err[8192];

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rt_program.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const name[] = {"out", "err", "a", "b", "c", "d", "m", "r"};
    for (int i = 0; i < PN_COUNT(name); i++)
        unlink(in_folder(name[i]));
    return rmdir(folder); /* fails if another file is left over */
}

static void slurp(const char *name, char *to, size_t size)
{
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    size_t count = fread(to, 1, size - 1, file);
    to[count] = 0;
    fclose(file);
}

/* The words of `line` are the arguments; @ stands for the folder. */
static pid_t begin(const char *line, const char *stdout_path)
{
    static const int warmup[] = {4, 2, 0};
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    char words[1024] = "toy ", *argv[32];
    int argc = 0;
    for (const char *c = line; *c; c++) {
        char one[2] = {*c, 0};
        strcat(words, *c == '@' ? folder : one);
    }
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    if (!freopen(stdout_path, "w", stdout) || !freopen(in_folder("err"), "w", stderr))
        _exit(99);
    toy_set(warmup, false, 3);
    exit(pn_main(&toy_program, argc, argv));
}

static int end(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    slurp("err", err, sizeof err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const char *line)
{
    int code = end(begin(line, in_folder("out")));
    slurp("out", out, sizeof out);
    return code;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text);
}

static void assert_code(int code, int expected)
{
    if (code != expected)
        fail_msg("exit code %d, not %d: %s", code, expected, err);
}

static bool same_files(const char *a, const char *b)
{
    static char x[1 << 16], y[1 << 16];
    FILE *f = fopen(in_folder(a), "rb"), *g = fopen(in_folder(b), "rb");
    assert_true(f && g);
    size_t m = fread(x, 1, sizeof x, f), n = fread(y, 1, sizeof y, g);
    fclose(f);
    fclose(g);
    assert_true(m > 0 && m < sizeof x);
    return m == n && memcmp(x, y, m) == 0;
}

/* What a safetensors file says of itself. */
static json_t *about(const char *name)
{
    static char bytes[1 << 14];
    uint64_t length;
    slurp(name, bytes, sizeof bytes);
    memcpy(&length, bytes, 8);
    assert_true(length < sizeof bytes - 8);
    json_t *header = json_loadb(bytes + 8, length, 0, NULL);
    json_t *texts = json_incref(json_object_get(header, "__metadata__"));
    json_decref(header);
    assert_non_null(texts);
    return texts;
}

static void usage_errors(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } wrong[] = {
        {"--stpes 3", "unknown option '--stpes'; did you mean --steps?"},
        {"--bogus", "unknown option '--bogus'"},
        {"-x", "unknown option '-x'"},
        {"file", "unexpected argument 'file'"},
        {"--steps", "--steps wants a value"},
        {"--steps x", "--steps wants a whole number from 0, not 'x'"},
        {"--steps -1", "--steps wants a whole number from 0, not '-1'"},
        {"--steps 99999999999999999999", "--steps wants a whole number"},
        {"--steps 1.5", "--steps wants a whole number"},
        {"--seed -1", "--seed wants a whole number"},
        {"--seed 18446744073709551616", "--seed wants a whole number"},
        {"--eval-every=", "--eval-every wants a whole number"},
        {"--transport thread", "unknown transport 'thread'; did you mean 'threads'?"},
        {"--quiet=1", "--quiet takes no value"},
        {"--steps 1 --epochs 1", "give one"},
        {"--load @/a --resume @/b", "give one"},
        {"--checkpoint-every 5", "--checkpoint-every wants --checkpoint FILE"},
    };
    for (int i = 0; i < PN_COUNT(wrong); i++) {
        assert_code(run(wrong[i].line), 2);
        assert_has(err, wrong[i].says);
        assert_string_equal(out, "");
    }
}

static void help_and_version(void **state)
{
    (void)state;
    assert_code(run("--help"), 0);
    assert_has(out, "--eval-every N");
    assert_has(out, "transports: threads");
    assert_code(run("--version"), 0);
    assert_has(out, "toy (pnetc " PN_VERSION);
    assert_code(end(begin("--help", "/dev/full")), 1);
    assert_has(err, "cannot write to standard output: No space left on device");
}

static void a_run_and_its_last_line(void **state)
{
    (void)state;
    assert_code(run("--eval-every 20"), 0);
    assert_has(out, "toy: 3 stages");
    assert_has(out, "step 60/60");
    assert_has(out, "step 20  test accuracy");
    const char *last = strstr(out, "\ntest accuracy ");
    assert_non_null(last);
    float accuracy;
    int images, length = 0;
    assert_int_equal(sscanf(last, "\ntest accuracy %f %% (%d images)%n", &accuracy, &images, &length), 2);
    assert_int_equal(images, 30);
    assert_string_equal(last + length, "\n");
    assert_code(run("--quiet --steps 3"), 0);
    assert_true(strncmp(out, "test accuracy ", 14) == 0);
    assert_code(end(begin("--quiet --steps 3", "/dev/full")), 1);
    assert_has(err, "cannot write to standard output");
}

static void transports_seeds_and_tests(void **state)
{
    (void)state;
    assert_code(run("--transport serial --save @/a"), 0);
    assert_code(run("--transport=threads --eval-every 7 --save @/b"), 0);
    assert_true(same_files("a", "b"));
    assert_code(run("--seed 2 --save @/b"), 0);
    assert_false(same_files("a", "b"));
    assert_code(run("--epochs 2 --save @/b"), 0); /* 200 / 4 steps an epoch */
    assert_has(out, "100 steps");
}

static void save_load_test_only(void **state)
{
    (void)state;
    assert_code(run("--save @/a"), 0);
    char last[128];
    snprintf(last, sizeof last, "%s", strstr(out, "\ntest accuracy"));
    assert_code(run("--load @/a --steps 0 --save @/b"), 0);
    assert_true(same_files("a", "b"));
    assert_has(out, last);
    assert_code(run("--load @/none"), 1);
    assert_has(err, "/none: No such file or directory");
    assert_code(run("--save @/no/where"), 1); /* said before the training */
    assert_has(err, "/no/where: No such file or directory");
    assert_string_equal(out, "");
    assert_code(run("--save /dev/full"), 1); /* the result is not lost */
    assert_has(err, "cannot write /dev/full: No space left on device");
    assert_has(out, "\ntest accuracy ");
}

static void metrics_and_report(void **state)
{
    (void)state;
    assert_code(run("--quiet --steps 60 --eval-every 30 --metrics @/m --report @/r"), 0);
    FILE *file = fopen(in_folder("m"), "r");
    assert_non_null(file);
    char line[1024];
    int intervals = 0, tests = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        assert_true(json_is_integer(json_object_get(object, "step")));
        if (json_object_get(object, "test_loss")) {
            tests++;
            assert_int_equal(json_integer_value(json_object_get(object, "step")), 30 * tests);
        } else {
            intervals++;
            assert_true(json_real_value(json_object_get(object, "lr")) == 0.05);
            assert_string_equal(json_string_value(json_object_get(object, "phase")), "stale");
        }
        json_decref(object);
    }
    fclose(file);
    assert_int_equal(tests, 2);
    assert_int_equal(intervals, 30);

    json_t *report = json_load_file(in_folder("r"), 0, NULL);
    assert_non_null(report);
    static const int staleness_expected[] = {4, 2, 0};
    json_t *list = json_object_get(report, "stages");
    assert_int_equal(json_array_size(list), STAGES);
    for (int s = 0; s < STAGES; s++) {
        json_t *stage = json_array_get(list, (size_t)s);
        assert_int_equal(json_integer_value(json_object_get(stage, "staleness")), staleness_expected[s]);
        assert_int_equal(json_integer_value(json_object_get(stage, "ring")), staleness_expected[s] + 1);
    }
    assert_int_equal(json_integer_value(json_object_get(report, "traffic_bytes")), 4 * VALUES * sizeof(float));
    assert_int_equal(json_integer_value(json_object_get(report, "static_bytes")), 6000);
    json_decref(report);
    assert_code(run("--metrics /dev/full"), 1);
    assert_has(err, "/dev/full is not complete");
}

/* The toy's warm-ups are 4, 2, 0: after update m of a longer run its weights are those of a run of m steps, since what
 * is in flight reads weights only. */
static void checkpoints_are_of_their_step(void **state)
{
    (void)state;
    static const char *const by[] = {"serial", "threads"};
    char line[256];
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "--transport %s --steps 25 --checkpoint @/a --save @/c", by[i % 2]);
        assert_code(run(line), 0);
        assert_has(out, "wrote the checkpoint of step 25 to ");
        /* the file of step 25, the last but for the end, is what --checkpoint-every leaves when the end cannot write */
        fail_stage = i < 2 ? 0 : 2;
        fail_at = 33;
        snprintf(line, sizeof line, "--transport %s --steps 60 --prefetch 2 --checkpoint @/b --checkpoint-every 5",
                 by[i % 2]);
        assert_code(run(line), 1);
        fail_stage = -1;
        snprintf(line, sizeof line, "--steps 0 --load @/b --save @/m");
        assert_code(run(line), 0);
        json_t *texts = about("b");
        int step = atoi(json_string_value(json_object_get(texts, "step")));
        json_decref(texts);
        assert_true(step % 5 == 0 && step >= 25 && step <= 30);
        if (step == 25) {
            assert_true(same_files("a", "b"));
            assert_true(same_files("c", "m"));
        }
    }
}

static void a_run_goes_on(void **state)
{
    (void)state;
    assert_code(run("--steps 60 --checkpoint @/a --save @/c --metrics @/m --eval-every 10"), 0);
    assert_code(run("--steps 30 --checkpoint @/b --metrics @/r --eval-every 10"), 0);
    assert_code(run("--resume @/b --steps 60 --transport serial --checkpoint @/a --save @/c"), 0);
    assert_has(out, "goes on after step 30");
    assert_code(run("--resume @/b --steps 60 --checkpoint-every 1 --checkpoint @/b --save @/d"), 0);
    assert_true(same_files("a", "b"));
    assert_true(same_files("c", "d"));
    assert_code(run("--resume @/b --steps 60 --save @/d"), 0); /* nothing is left to do */
    assert_true(same_files("c", "d"));
    assert_code(run("--load @/b --steps 0 --save @/d"), 0);
    assert_true(same_files("c", "d"));
    assert_code(run("--resume @/b --steps 70 --report @/d"), 0);
    json_t *report = json_load_file(in_folder("d"), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(report, "steps")), 70);
    assert_int_equal(json_integer_value(json_object_get(report, "first_step")), 60);
    assert_int_equal(json_integer_value(json_object_get(report, "traffic_bytes")), 4 * VALUES * sizeof(float));
    json_decref(report);
}

/* Metrics go on behind the step: each step once, whatever the file held beyond. */
static void metrics_go_on(void **state)
{
    (void)state;
    assert_code(run("--steps 30 --checkpoint @/a"), 0);
    assert_code(run("--steps 47 --metrics @/m --eval-every 10"), 0);
    FILE *file = fopen(in_folder("m"), "a");
    assert_true(file && fputs("{\"step\": 4", file) >= 0 && fclose(file) == 0); /* torn */
    assert_code(run("--resume @/a --steps 60 --metrics @/m --eval-every 10"), 0);
    assert_non_null(file = fopen(in_folder("m"), "r"));
    char line[1024];
    int last = 0, tests = 0, intervals = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        int step = (int)json_integer_value(json_object_get(object, "step"));
        bool test = json_object_get(object, "test_loss") != NULL;
        assert_true(step >= last);
        last = step;
        tests += test;
        intervals += !test;
        json_decref(object);
    }
    fclose(file);
    assert_int_equal(last, 60);
    assert_int_equal(tests, 6);
    assert_int_equal(intervals, 30); /* of two steps */
}

static void only_its_own_checkpoints(void **state)
{
    (void)state;
    assert_code(run("--steps 10 --checkpoint @/a --save @/b"), 0);
    assert_code(run("--resume @/b"), 1);
    assert_has(err, "is no checkpoint: it says nothing of its step");
    assert_code(run("--resume @/none"), 1);
    assert_has(err, "/none: No such file");
    assert_code(run("--resume @/a --seed 2"), 1);
    assert_has(err, "was written by a run with seed 1, not 2");
    assert_code(run("--resume @/a --data digits:x"), 1);
    assert_code(run("--steps 10 --seed 3 --checkpoint @/c"), 0);
    assert_code(run("--resume @/c --steps 20"), 0); /* its seed goes on */
    assert_has(out, "seed 3");
    assert_code(run("--steps 5 --checkpoint /dev/full"), 1);
    assert_has(err, "cannot write /dev/full: No space left on device");
    assert_has(out, "\ntest accuracy ");
    assert_code(run("--steps 5 --checkpoint-every 2 --checkpoint /dev/full"), 1);
    assert_has(err, "warning: checkpoint of step 2: cannot write /dev/full: No space left on device; training goes on");
    assert_code(run("--steps 5 --checkpoint @/no/where"), 1);
    assert_string_equal(out, "");
}

static void interrupt_saves(void **state)
{
    (void)state;
    static const char *const name[] = {"serial", "threads"};
    for (int i = 0; i < 2; i++) {
        char line[128];
        unlink(in_folder("c"));
        unlink(in_folder("m"));
        snprintf(line, sizeof line, "--transport %s --steps 1000000000 --metrics @/m --save @/c", name[i]);
        pid_t child = begin(line, in_folder("out"));
        do { /* the handler is in place before the stage table is printed */
            nanosleep(&(struct timespec){0, 20000000L}, NULL);
            slurp("out", out, sizeof out);
        } while (!strstr(out, "layers\n"));
        assert_int_equal(kill(child, SIGINT), 0);
        assert_code(end(child), 0);
        slurp("out", out, sizeof out);
        assert_has(out, "interrupted after ");
        assert_has(out, "saved the weights after ");
        assert_has(out, "\ntest accuracy ");
        assert_has(err, "interrupt: ending");
        assert_int_equal(access(in_folder("c"), R_OK), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(a_run_and_its_last_line),
        cmocka_unit_test(transports_seeds_and_tests),
        cmocka_unit_test(save_load_test_only),
        cmocka_unit_test(metrics_and_report),
        cmocka_unit_test(checkpoints_are_of_their_step),
        cmocka_unit_test(a_run_goes_on),
        cmocka_unit_test(metrics_go_on),
        cmocka_unit_test(only_its_own_checkpoints),
        cmocka_unit_test(interrupt_saves),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
