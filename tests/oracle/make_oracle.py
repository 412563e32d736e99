#!/usr/bin/env python3
"""make_oracle.py: saves what PyTorch computes in double for each op, as cases of text that tests/unit/oracle.c reads.

Run by hand where PyTorch is (Debian: python3-torch); the output, *.txt in this folder, is committed:
    tests/oracle/make_oracle.py
Each case is one op (followed by `loss`, 1/2 mean over the batch of the sum of squares against a target, unless it is a loss
itself) with seeded inputs, multiples of 1/32: exact in f32, short here, with ties in the pools. All numbers are in plain layout:
    case NAME                   op, attributes as the language has them
    op NAME ATTRS
    relu                        a fused relu behind the op
    batch N
    input SHAPE / label SHAPE   numbers follow; the op's inputs in order, then the target
    param                       numbers follow; weights, then bias
    out                         output of the op
    loss                        one number
    gradient                    of each f32 input, target excepted, then of each parameter
    running                     batch_norm: running mean and variance after one minibatch from 0 and 1
    test                        batch_norm: output of a test with those
    end
The cases of optimizers.txt, which tests/unit/rt_optimizers.c reads, are runs of one optimiser:
    case NAME KEY=VALUE...      as the language has it
    weights N                   numbers follow, before the first step
    rate X / gradient N / weights N     of each step, and what it leaves
    end
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
FOLDER = os.path.dirname(os.path.abspath(__file__))
MASK64 = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


GOLDEN = 0x9E3779B97F4A7C15


def pn_random(key, counter):
    return mix((mix((key + GOLDEN) & MASK64) + (counter + 1) * GOLDEN) & MASK64)


def pn_key(seed, name):
    value = 0xCBF29CE484222325
    for c in name.encode():
        value = ((value ^ c) * 0x100000001B3) & MASK64
    return mix((value + mix((seed + GOLDEN) & MASK64)) & MASK64)


def dropout_mask(seed, name, minibatch, probability, shape):
    """The mask as runtime/rt.h defines it, written a second time."""
    key = pn_random(pn_key(seed, name), minibatch)
    count = 1
    for n in shape:
        count *= n
    keep = [float((pn_random(key, i) >> 11) * 2.0 ** -53 >= probability) for i in range(count)]
    return torch.tensor(keep).reshape(shape)


def numbers(t):
    values = t.detach().reshape(-1).tolist()
    lines = []
    for i in range(0, len(values), 12):
        lines.append(" ".join("%.8g" % v for v in values[i:i + 12]))
    return "\n".join(lines) + "\n"


class Writer:
    def __init__(self, file, seed):
        self.out = open(os.path.join(FOLDER, file), "w")
        self.generator = torch.Generator().manual_seed(seed)

    def random(self, *shape):
        return (torch.randn(*shape, generator=self.generator) * 32).round() / 32

    def case(self, op, attrs, shapes, params, forward, batch=2, relu=False, loss=None, classes=0, tested=None):
        name = f"{op}({attrs})"
        inputs = [self.random(batch, *s).requires_grad_() for s in shapes]
        weights = [self.random(*s).requires_grad_() for s in params]
        label = torch.randint(0, classes, (batch,), generator=self.generator) if classes else None
        text = [f"case {name}{' relu' if relu else ''}\nop {op} {attrs}\nbatch {batch}\n"]
        if relu:
            text.append("relu\n")
        for s, x in zip(shapes, inputs):
            text.append(f"input {','.join(map(str, s))}\n{numbers(x)}")
        if loss:
            y = None
            if label is not None:
                text.append(f"label {classes}\n{' '.join(map(str, label.tolist()))}\n")
            total = forward(*inputs, *([label] if label is not None else []))
        else:
            y = forward(*inputs, *weights)
            if relu:
                y = torch.relu(y)
            target = self.random(*y.shape)
            text.append(f"input {','.join(map(str, y.shape[1:]))}\n{numbers(target)}")
            total = ((y - target) ** 2).sum() / 2 / batch
        for w in weights:
            text.append(f"param\n{numbers(w)}")
        if y is not None:
            text.append(f"out\n{numbers(y)}")
        text.append(f"loss\n{numbers(total)}")
        total.backward()
        for t in inputs + weights:
            text.append(f"gradient\n{numbers(t.grad)}")
        if tested:
            running, y = tested(*inputs, *weights)
            for r in running:
                text.append(f"running\n{numbers(r)}")
            text.append(f"test\n{numbers(torch.relu(y) if relu else y)}")
        text.append("end\n")
        self.out.write("".join(text))


def conv(file):
    w = Writer(file, 1)

    def one(image, out, kernel, bias=True, relu=False, batch=2, **o):
        stride, pad, dilation, groups = (o.get(k, v) for k, v in
                                         (("stride", 1), ("pad", 0), ("dilation", 1), ("groups", 1)))
        attrs = " ".join([f"out={out} kernel={kernel}"] + [f"{k}={v}" for k, v in o.items()] + ([] if bias else ["bias=0"]))
        params = [(out, image[0] // groups, kernel, kernel)] + ([(out,)] if bias else [])
        w.case("conv", attrs, [image], params, lambda x, k, b=None: F.conv2d(x, k, b, stride, pad, dilation, groups),
               relu=relu, batch=batch)

    one((1, 1, 1), 1, 1)
    one((3, 6, 5), 4, 1, bias=False)
    one((2, 7, 7), 3, 3)
    one((3, 8, 8), 4, 5, pad=2, relu=True)
    one((2, 9, 8), 3, 3, stride=2, pad=1)
    one((2, 9, 9), 2, 2, stride=3)
    one((2, 9, 9), 3, 3, dilation=2, pad=2, stride=2)
    one((4, 6, 6), 6, 3, pad=1, groups=2, relu=True)
    one((5, 6, 7), 5, 3, pad=1, groups=5, bias=False, stride=2)
    one((2, 7, 7), 17, 3, pad=1, relu=True)


def linear(file):
    w = Writer(file, 2)

    def one(image, out, bias=True, relu=False, batch=2):
        features = torch.Size(image).numel()
        w.case("linear", f"out={out}{'' if bias else ' bias=0'}", [image], [(out, features)] + ([(out,)] if bias else []),
               lambda x, k, b=None: F.linear(x.flatten(1), k, b), relu=relu, batch=batch)

    one((1,), 1)
    one((7,), 3, batch=5)
    one((2, 3, 4), 6, relu=True)
    one((40,), 19, bias=False)


def pool(file):
    w = Writer(file, 3)
    for image, kernel, stride, pad, ceil in (((2, 6, 6), 2, 2, 0, 0), ((3, 7, 8), 3, 2, 1, 0), ((1, 7, 7), 2, 3, 0, 0),
                                             ((2, 6, 5), 3, 2, 0, 1), ((1, 8, 8), 3, 3, 1, 1)):
        attrs = f"kernel={kernel} stride={stride} pad={pad} ceil={ceil}"
        for relu in (False, True):
            w.case("maxpool", attrs, [image], [], lambda x: F.max_pool2d(x, kernel, stride, pad, 1, bool(ceil)), relu=relu)
        w.case("avgpool", attrs, [image], [], lambda x: F.avg_pool2d(x, kernel, stride, pad, bool(ceil), False))
        if not ceil:
            w.case("avgpool", attrs + " count_padding=1", [image], [],
                   lambda x: F.avg_pool2d(x, kernel, stride, pad, False, True))
    w.case("global_avgpool", "", [(5, 4, 3)], [], lambda x: x.mean((2, 3), keepdim=True))


def norm(file):
    w = Writer(file, 5)

    def one(shape, eps=1e-5, momentum=0.1, **o):
        c = (shape[0],)

        def tested(x, k, b):
            running = torch.zeros(c), torch.ones(c)
            F.batch_norm(x, *running, k, b, True, momentum, eps)
            return running, F.batch_norm(x, *running, k, b, False, momentum, eps)
        w.case("batch_norm", f"eps={eps} momentum={momentum}", [shape], [c, c],
               lambda x, k, b: F.batch_norm(x, None, None, k, b, True, momentum, eps), tested=tested, **o)

    one((3, 4, 5))
    one((3, 4, 5), relu=True, batch=5)
    one((17, 3, 3), eps=0.25, momentum=0.3)
    one((2, 1, 1), batch=4)
    one((7,), batch=6, relu=True)
    one((1,), eps=0.1, momentum=1.0, batch=3)
    for relu in (False, True):
        w.case("batch_norm_add", "eps=0.1", [(5, 3, 3), (5, 3, 3)], [(5,), (5,)],
               lambda x, s, k, b: F.batch_norm(x, None, None, k, b, True, 0.1, 0.1) + s, relu=relu, batch=3)
    for shape, size, alpha, beta, k in (((9, 3, 4), 5, 1e-4, 0.75, 1.0), ((6, 2, 2), 3, 2.0, 0.75, 1.0),
                                        ((3, 9, 9), 5, 0.5, 0.6, 2.0)):
        w.case("lrn", f"size={size} alpha={alpha} beta={beta} k={k}", [shape], [],
               lambda x: F.local_response_norm(x, size, alpha, beta, k))


def others(file):
    w = Writer(file, 4)
    for name, function in (("relu", torch.relu), ("tanh", torch.tanh), ("sigmoid", torch.sigmoid)):
        w.case(name, "", [(2, 3, 5)], [], function)
        w.case(name, "", [(13,)], [], function)
    w.case("leaky_relu", "", [(2, 3, 5)], [], F.leaky_relu)
    w.case("leaky_relu", "slope=0.125", [(13,)], [], lambda x: F.leaky_relu(x, 0.125))
    w.case("add", "", [(2, 3, 5), (2, 3, 5)], [], torch.add)
    w.case("add", "", [(7,), (7,)], [], torch.add, relu=True)
    for shape, channels, stride in (((16, 6, 6), 32, 2), ((4, 5, 7), 4, 1), ((2, 7, 5), 5, 3)):
        low = (channels - shape[0]) // 2
        w.case("shortcut", f"channels={channels} stride={stride}", [shape], [],
               lambda x: F.pad(x[:, :, ::stride, ::stride], (0, 0, 0, 0, low, channels - shape[0] - low)))
    w.case("concat", "", [(2, 3, 5), (1, 3, 5)], [], lambda a, b: torch.cat((a, b), 1))
    w.case("concat", "", [(2,), (1,), (4,)], [], lambda a, b, c: torch.cat((a, b, c), 1), batch=3)
    w.case("flatten", "", [(2, 3, 5)], [], lambda x: x.flatten(1))
    for p in (0.25, 0.5):
        # the op is node 1 behind one input: oracle.c names it dropout1; seed 9, minibatch 4
        w.case("dropout", f"probability={p}", [(3, 4, 5)], [],
               lambda x: x * dropout_mask(9, "dropout1", 4, p, x.shape) / (1 - p))
    w.case("softmax_cross_entropy", "", [(10,)], [], F.cross_entropy, batch=6, loss=True, classes=10)
    w.case("softmax_cross_entropy", "", [(2,)], [], F.cross_entropy, batch=1, loss=True, classes=2)
    w.case("mse", "", [(2, 3, 4), (2, 3, 4)], [], lambda x, t: ((x - t) ** 2).sum() / 2 / 3, batch=3, loss=True)
    w.case("mse", "", [(6,)], [], lambda x, label: ((x - F.one_hot(label, 6)) ** 2).sum() / 2 / 4, batch=4, loss=True,
           classes=6)


def optimizers(file):
    """Six steps of seven weights, at a rate that falls; without a gradient in the third step."""
    generator = torch.Generator().manual_seed(6)
    cases = [(torch.optim.SGD, "sgd", {}), (torch.optim.SGD, "sgd", {"momentum": 0.875}),
             (torch.optim.SGD, "sgd", {"momentum": 0.875, "weight_decay": 0.125}),
             (torch.optim.SGD, "sgd", {"momentum": 0.5, "weight_decay": 0.125, "nesterov": True})]
    for kind, name in ((torch.optim.Adam, "adam"), (torch.optim.AdamW, "adamw")):
        cases += [(kind, name, more) for more in ({}, {"beta1": 0.75, "beta2": 0.9375, "epsilon": 0.015625, "weight_decay": 0.25})]
    with open(os.path.join(FOLDER, file), "w") as out:
        for kind, name, more in cases:
            out.write(" ".join(["case", name, *(f"{key}={float(value):g}" for key, value in more.items())]) + "\n")
            words = {key: value for key, value in more.items() if not key.startswith("beta") and key != "epsilon"}
            if "beta1" in more:
                words.update(betas=(more["beta1"], more["beta2"]), eps=more["epsilon"])
            weights = ((torch.randn(7, generator=generator) * 32).round() / 32).requires_grad_()
            optimizer = kind([weights], lr=0.125, **words)
            out.write(f"weights 7\n{numbers(weights)}")
            for step in range(6):
                rate = optimizer.param_groups[0]["lr"] = 0.125 / (1 << step)
                weights.grad = (torch.randn(7, generator=generator) * 32).round() / 32 * (step != 2)
                optimizer.step()
                out.write(f"rate {rate:g}\ngradient 7\n{numbers(weights.grad)}weights 7\n{numbers(weights)}")
            out.write("end\n")


if __name__ == "__main__":
    conv("conv.txt")
    linear("linear.txt")
    pool("pool.txt")
    norm("norm.txt")
    others("others.txt")
    optimizers("optimizers.txt")
