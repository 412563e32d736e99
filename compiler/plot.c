/* plot.c: --metrics files of runs -> a gnuplot script with the loss above and the test accuracy below. See draw.h.
 *
 * A line of metrics is a JSON object (pnetc(1)): with `loss` it tells of an interval of training, with `test_loss` of a
 * test. Curves differ in colour, dashes and points: they read in grey as well. */
#include "draw.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    double x, y; /* y NaN: a gap, where training had diverged */
} Point;
typedef VEC(Point) Curve;
typedef struct {
    const char *name;
    Curve loss, accuracy;
} Run;

typedef struct {
    Arena *arena;
    Diags *diags;
    const SourceFile *file;
    const char *x;
    Run *run;
} Reading;

static bool wrong_line(Reading *r, size_t at, size_t length, const char *what)
{
    const uint32_t begin = r->file->base + (uint32_t)at;
    diag_error(r->diags, P0608, (Span){begin, begin + (uint32_t)length}, "%s", what);
    return false;
}

static double number_or_gap(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* One line, which is not empty. `last`: of a file that does not end with a newline. */
static bool read_line(Reading *r, size_t at, size_t length, bool last)
{
    json_t *line = json_loadb(r->file->text + at, length, 0, NULL);
    if (!line && last) {
        const uint32_t begin = r->file->base + (uint32_t)at;
        diag_warning(r->diags, P0608, (Span){begin, begin + (uint32_t)length},
                     "the last line is cut off and left out: was the run killed?");
        return true;
    }
    const json_t *step = json_object_get(line, "step"), *x = json_object_get(line, r->x);
    const json_t *loss = json_object_get(line, "loss"), *accuracy = json_object_get(line, "test_accuracy");
    const char *wrong = NULL;
    if (!line)
        wrong = "this is not JSON";
    else if (!json_is_integer(step) || (!loss && !json_object_get(line, "test_loss")))
        wrong = "this is no line of metrics: it wants `step`, and `loss` or `test_loss`";
    else if ((loss && !json_is_number(loss) && !json_is_null(loss)) ||
             (accuracy && !json_is_number(accuracy) && !json_is_null(accuracy)))
        wrong = "this is no line of metrics: a loss or an accuracy is not a number";
    else if (!json_is_number(x))
        wrong = arena_printf(r->arena, "this line has no `%s`: choose another --x", r->x);
    if (!wrong && loss)
        *vec_push(r->arena, &r->run->loss) = (Point){json_number_value(x), number_or_gap(loss)};
    if (!wrong && json_is_number(accuracy))
        *vec_push(r->arena, &r->run->accuracy) = (Point){json_number_value(x), 100 * json_number_value(accuracy)};
    json_decref(line);
    return !wrong || wrong_line(r, at, length, wrong);
}

static bool read_run(Reading *r)
{
    enum { MOST_BYTES = 16 << 20 }; /* load_text() reads little more */
    const char *text = r->file->text;
    const size_t length = r->file->length;
    bool good = true;
    if (length > MOST_BYTES) {
        diag_error(r->diags, P0608, (Span){0}, "%s: this is more than 16 MiB, too much for metrics", r->file->path);
        return false;
    }
    for (size_t at = 0; good && at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        const size_t end = newline ? (size_t)(newline - text) : length;
        if (end > at)
            good = read_line(r, at, end - at, !newline);
        at = end + 1;
    }
    if (!good || r->run->loss.count + r->run->accuracy.count)
        return good;
    diag_error(r->diags, P0608, (Span){0}, "%s: there are no metrics in it", r->file->path);
    return false;
}

/* The mean of up to `window` points that end here: what was known at that time. */
static void smooth(Curve *curve, int window)
{
    for (int i = curve->count - 1; i >= 0; i--) {
        const int first = i - window + 1 > 0 ? i - window + 1 : 0;
        double sum = 0;
        for (int k = first; k <= i; k++)
            sum += curve->at[k].y;
        curve->at[i].y = sum / (i - first + 1);
    }
}

/* Inside single quotes gnuplot knows one special letter, the quote. */
static const char *quoted(Arena *arena, const char *text)
{
    Text word = text_new(arena);
    text_append(&word, "'", 1);
    for (; *text; text++)
        if (*text == '\'')
            text_append(&word, "''", 2);
        else
            text_append(&word, (unsigned char)*text < ' ' ? " " : text, 1);
    text_append(&word, "'", 1);
    return word.data;
}

static void curve_data(Text *out, const char *name, int run, const Curve *curve)
{
    text_printf(out, "$%s%d << END\n", name, run);
    for (int i = 0; i < curve->count; i++)
        if (isnan(curve->at[i].y))
            text_printf(out, "\n"); /* breaks the line there */
        else
            text_printf(out, "%.9g %.9g\n", curve->at[i].x, curve->at[i].y);
    text_printf(out, "END\n");
}

static bool has_numbers(const Curve *curve)
{
    for (int i = 0; i < curve->count; i++)
        if (!isnan(curve->at[i].y))
            return true;
    return false;
}

static double last_x(const Curve *curve)
{
    return curve->count ? curve->at[curve->count - 1].x : 0;
}

/* The curves of one panel; runs without a curve in it are left out. `keyed`: with the legend. */
static void panel(Text *out, const Run *run, int runs, const char *name, bool accuracy, bool keyed)
{
    bool first = true;
    for (int i = 0; i < runs; i++) {
        if (!has_numbers(accuracy ? &run[i].accuracy : &run[i].loss))
            continue;
        text_printf(out, "%s $%s%d using 1:2 with linespoints linestyle %d %s%s", first ? "plot" : ", \\\n    ", name,
                    i, i % 8 + 1, keyed ? "title " : "notitle", keyed ? quoted(out->arena, run[i].name) : "");
        first = false;
    }
    text_printf(out, "\n");
}

static void script(const Run *run, int runs, const char *x, int window, Text *out)
{
    /* Okabe and Ito, dark enough for lines */
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#000000", "#b8860b", "#56b4e9", "#7f7f7f"};
    Arena *arena = out->arena;
    bool loss = false, accuracy = false;
    double furthest = 0;
    for (int i = 0; i < runs; i++) {
        curve_data(out, "loss", i, &run[i].loss);
        curve_data(out, "accuracy", i, &run[i].accuracy);
        loss |= has_numbers(&run[i].loss);
        accuracy |= has_numbers(&run[i].accuracy);
        furthest = fmax(furthest, fmax(last_x(&run[i].loss), last_x(&run[i].accuracy)));
    }
    text_printf(out, "set terminal svg noenhanced size 1000,%d font 'Helvetica,14' background '#ffffff'\n",
                (loss && accuracy ? 760 : 420) + 22 * ((runs + 1) / 2));
    for (int i = 0; i < COUNT(colours); i++)
        text_printf(out,
                    "set style line %d linecolor rgb '%s' linewidth 2 dashtype %d pointtype %d pointsize 0.6 "
                    "pointinterval 1\n",
                    i + 1, colours[i], i % 5 + 1, i + 4);
    text_printf(out, "set grid linecolor rgb '#cccccc'\nset border 3\nset tics nomirror\n"
                     "set lmargin 11\nset rmargin 3\n"
                     "set key outside top center horizontal reverse Left noenhanced maxcols 2 samplen 5\n");
    if (furthest > 0)
        text_printf(out, "set xrange [0:%.9g]\n", furthest);
    if (loss && accuracy)
        text_printf(out, "set multiplot layout 2,1\n");
    if (loss) {
        text_printf(out, "set ylabel 'training loss%s'\n%s",
                    window > 1 ? arena_printf(arena, ", mean of %d intervals", window) : ", mean of an interval",
                    accuracy ? "" : arena_printf(arena, "set xlabel '%s'\n", x));
        panel(out, run, runs, "loss", false, true);
    }
    if (accuracy) {
        text_printf(out, "%sset ylabel 'test accuracy, %%'\nset xlabel '%s'\n", loss ? "unset key\n" : "", x);
        panel(out, run, runs, "accuracy", true, !loss);
    }
    if (loss && accuracy)
        text_printf(out, "unset multiplot\n");
}

bool plot_script(Arena *arena, Diags *diags, Sources *sources, const char *const *argument, int arguments,
                 const char *x, int window, Text *out)
{
    Run *run = arena_alloc(arena, sizeof *run * (size_t)arguments);
    bool good = true;
    for (int i = 0; i < arguments; i++) {
        struct stat status;
        const char *equals = stat(argument[i], &status) ? strchr(argument[i], '=') : NULL;
        const char *path = equals ? equals + 1 : argument[i];
        run[i].name = equals ? arena_text(arena, argument[i], (size_t)(equals - argument[i])) : path;
        Reading r = {.arena = arena, .diags = diags, .x = x, .run = &run[i]};
        r.file = load_text(arena, diags, sources, path);
        good = r.file && read_run(&r) && good;
        smooth(&run[i].loss, window);
    }
    bool any = false;
    for (int i = 0; i < arguments; i++)
        any |= has_numbers(&run[i].loss) || has_numbers(&run[i].accuracy);
    if (good && !any) {
        diag_error(diags, P0608, (Span){0}, "there is nothing to draw: no loss is a number");
        return false;
    }
    if (good)
        script(run, arguments, x, window, out);
    return good;
}
