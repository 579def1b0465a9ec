"""Tables of the files in docs/measurements: what a table's mark asks for, and a form for each kind of file.

A mark is `[ROWS[ by COLUMNS]: ]PART; PART...`, a part `[LABEL=]NAME[ sizes=8,32K][ kernel=WORD]`. A part whose label has lists in braces stands for
one part for each choice from them, with the choices put into `{}` of the name in this order: `{a,b}, {c,d}=x-{}-{}` is four parts.
"""
import itertools
import json
import math
import pathlib
import re
import sys
import typing

folder = pathlib.Path(__file__).resolve().parent.parent / "docs/measurements"
LABELS = {"onednn": "oneDNN", "openblas": "OpenBLAS", "libxsmm": "libxsmm", "pytorch": "PyTorch", "tacc": "the best",
          "depthwise-product": "one pass", "in-turn": "one behind the other",
          "mpich": "MPICH", "openmpi": "Open MPI", "gloo": "Gloo", "mpich+tacc": "MPICH preloaded", "openmpi+tacc": "Open MPI preloaded",
          "resnet50": "ResNet-50", "vgg16": "VGG-16", "alexnet": "AlexNet", "googlenet": "GoogLeNet"}
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def size_text(size):
    for letter, unit in reversed(UNITS.items()):
        if size >= unit and size % unit == 0:
            return f"{size // unit:,} {letter}iB"
    return f"{size} B"


def number(value):
    """Three digits, and all of those before the point: 0.11, 6.50, 12.4, 15,506."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def percent(part):
    return f"{100 * part:.0f} %"


def name_of(word):
    return LABELS.get(word, word)


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def expanded(part):
    """The parts that one with lists in braces stands for."""
    lists = [found.split(",") for found in re.findall(r"\{([^}]+)\}", part)]
    for choice in itertools.product(*lists):
        words = iter(choice)
        label = re.sub(r"\{[^}]+\}", lambda _: next(words), part)
        words = iter(choice)
        yield re.sub(r"\{\}", lambda _: next(words), label)


class Part(typing.NamedTuple):
    label: str
    name: str
    sizes: list  # of collectives those that are asked for; empty: all
    kernel: str  # of convolutions only those whose kernel has this word


def parse(marker):
    """(rows, columns, parts); what a mark does not say is ""."""
    axes, _, rest = marker.rpartition(": ")
    rows, _, columns = axes.partition(" by ")
    parts = []
    for part in itertools.chain.from_iterable(map(expanded, rest.split("; "))):
        words, kernel = re.match(r"(.*?)(?: kernel=(\S+))?$", part).groups()
        words, sizes = re.match(r"(.*?)(?: sizes=(\S+))?$", words).groups()
        label, _, name = words.rpartition("=")
        parts.append(Part(label, name, [bytes_of(size) for size in sizes.split(",")] if sizes else [], kernel or ""))
    return rows, columns, parts


def load(name):
    return json.loads((folder / f"{name}.json").read_text())


def peers_of(results):
    return list(dict.fromkeys(peer for result in results for peer in result["peers"]))


def collective_results(parts):
    """[(label, result)] of the sizes that are asked for."""
    found = []
    for label, name, sizes, _ in parts:
        results = load(name)["report"]["results"]
        missing = set(sizes) - {result["size"] for result in results}
        if missing:
            sys.exit(f"docs/measurements/{name}.json has no size {', '.join(map(str, sorted(missing)))}")
        found += [(label, result) for result in results if not sizes or result["size"] in sizes]
    return found


def collective_table(rows, _, parts):
    """A row for each size and file; ratios are peer's time / tacc's."""
    results = collective_results(parts)
    peers = peers_of([result for _, result in results])
    bounded = all("bound" in result for _, result in results)
    yield ([rows] if rows else []) + ["size", "tacc us"] + [text for peer in peers for text in (f"{name_of(peer)} us", "ratio")] + (
        ["bound us", "of bound"] if bounded else [])
    for label, result in results:
        line = ([label] if rows else []) + [size_text(result["size"]), number(result["time"])]
        for peer in peers:
            other = result["peers"].get(peer)
            line += [number(other["time"]), number(other["ratio"])] if other else ["-", "-"]
        if bounded:
            bound = result.get("bound")
            line += [number(bound["time"]), percent(bound["ratio"])] if bound else ["-", "-"]
        yield line


def layer_groups(parts):
    """{(label, pass, images): results} of convolutions; a layer that several networks have counts once."""
    groups = {}
    for label, name, _, kernel in parts:
        for result in load(name)["report"]["results"]:
            if kernel not in result["kernel"]:
                continue
            images = "as drawn" if result["net"] == "drawn" else str(result["batch"])
            groups.setdefault((label, result["pass"].replace("-", " "), images), []).append(result)
    return {key: list({str((result["shape"], result["batch"])): result for result in reversed(results)}.values()) if key[2] != "as drawn"
            else results for key, results in groups.items()}


def ratios_to(peer, results):
    return [result["peers"][peer]["ratio"] for result in results if peer in result["peers"]]


def convolution_table(rows, _, parts):
    """A row for each pass, number of images and file; ratios are peer's time / tacc's, over the layers that it computes. Where the
    bound was measured too: what part of it is reached, and the ratio to the first peer of a kernel that reached all of it."""
    groups = layer_groups(parts)
    known = peers_of(itertools.chain.from_iterable(groups.values()))
    peers = [peer for peer in known if peer != "bound"]
    yield ([rows] if rows else []) + ["pass", "images", "layers", "GFLOP/s"] + [
        text for peer in peers for text in (f"of {name_of(peer)}", "least", "at 0.95 or above")] + (
        ["of the bound", f"the bound, of {name_of(peers[0])}"] if "bound" in known else [])
    for (label, name, images), results in groups.items():
        line = ([label] if rows else []) + [name, images, str(len(results)), number(mean([result["gflops"] for result in results]))]
        for peer in peers:
            ratios = ratios_to(peer, results)
            line += [number(mean(ratios)), number(min(ratios)),
                     percent(sum(ratio >= 0.95 for ratio in ratios) / len(ratios))] if ratios else ["-", "-", "-"]
        if "bound" in known:
            both = [result["peers"] for result in results if {"bound", peers[0]} <= result["peers"].keys()]
            line += [number(mean([of["bound"]["ratio"] for of in both])),
                     number(mean([of[peers[0]]["ratio"] / of["bound"]["ratio"] for of in both]))] if both else ["-", "-"]
        yield line


def network_grid(parts):
    """A row for each pass and number of images; for each network GFLOP/s and the ratio to the first peer, for all layers those to all."""
    nets, passes = [], {}
    for part in parts:
        for result in load(part.name)["report"]["results"]:
            nets += [result["net"]] if result["net"] not in nets else []
            passes.setdefault((result["pass"].replace("-", " "), str(result["batch"])), []).append(result)
    distinct = {(name, images): results for (_, name, images), results in layer_groups(parts).items()}
    peers = sorted(peers_of(itertools.chain.from_iterable(passes.values())), key=list(LABELS).index)
    yield ["pass", "images", *map(name_of, nets), "all layers: GFLOP/s"] + [
        text for peer in peers for text in (f"of {name_of(peer)}", "least")]
    for key, results in passes.items():
        line = list(key)
        for net in nets:
            own = [result for result in results if result["net"] == net]
            line.append(f"{number(mean([result['gflops'] for result in own]))}, {number(mean(ratios_to('onednn', own)))}" if own else "-")
        line.append(number(mean([result["gflops"] for result in distinct[key]])))
        for peer in peers:
            ratios = ratios_to(peer, distinct[key])
            line += [number(mean(ratios)), number(min(ratios))] if ratios else ["-", "-"]
        yield line


def convolutions(rows, columns, parts):
    return network_grid(parts) if columns == "network" else convolution_table(rows, columns, parts)


def products(rows, _, parts):
    """Of matrices, a row for each shape, or, where rows have a name, for each file; ratios are peer's time / tacc's."""
    if rows:
        yield from product_means(rows, parts)
        return
    results = [result for part in parts for result in load(part.name)["report"]["results"]]
    peers = peers_of(results)
    yield ["rows x columns x depth", "GFLOP/s", *(f"of {name_of(peer)}" for peer in peers)]
    for result in results:
        yield [f"{result['m']}x{result['n']}x{result['k']}", number(result["gflops"]),
               *(number(result["peers"][peer]["ratio"]) if peer in result["peers"] else "-" for peer in peers)]
    yield ["geometric mean", number(mean([result["gflops"] for result in results])),
           *(number(mean(ratios_to(peer, results))) for peer in peers)]


def product_means(rows, parts):
    """Geometric means over the shapes of each file, and the least ratio."""
    runs = {part.label: load(part.name)["report"]["results"] for part in parts}
    peers = peers_of(itertools.chain.from_iterable(runs.values()))
    yield [rows, "shapes", "GFLOP/s", *(text for peer in peers for text in (f"of {name_of(peer)}", "least"))]
    for label, results in runs.items():
        yield [label, str(len(results)), number(mean([result["gflops"] for result in results])),
               *(text for peer in peers for text in (number(mean(ratios_to(peer, results))), number(min(ratios_to(peer, results)))))]


def other_layers(_, __, parts):
    """Of layers beside convolutions: what they move in a second, and that as a part of what a copy does."""
    results = [result for part in parts for result in load(part.name)["report"]["results"]]
    batches = list(dict.fromkeys(result["batch"] for result in results))
    cells = {(result["layer"], result["batch"]): result for result in results}
    yield ["layer"] + [text for batch in batches for text in (f"GB/s, {batch} image{'s' if batch > 1 else ''}", "of the copy")]
    for layer in dict.fromkeys(layer for layer, _ in cells):
        found = [cells[layer, batch] for batch in batches]
        yield [layer] + [text for cell in found for text in (number(cell["gigabytes_per_second"]), number(cell["copy_fraction"]))]


def played(plans):
    return [plan for plan in plans if "simulated_s" in plan]


def simulations(rows, _, parts):
    """Of tacc_sim, a row for each algorithm, a column for each file: microseconds as played."""
    times = [{plan["algorithm"]: plan["simulated_s"] * 1e6 for call in load(part.name)["report"]["results"]
              for plan in played(call["algorithms"])} for part in parts]
    yield [rows, *(part.label for part in parts)]
    for algorithm in sorted(times[0], key=times[0].get):
        yield [algorithm, *(number(column.get(algorithm)) for column in times)]


def written(_, __, parts):
    """Rows as they were written down, of what has no other form."""
    table = load(parts[0].name)["table"]
    return [table["columns"], *table["rows"]]


def form_of(name):
    file = load(name)
    if "table" in file:
        return written
    first = file["report"]["results"][0]
    for key, form in (("pass", convolutions), ("copy_fraction", other_layers), ("packs", products), ("algorithms", simulations)):
        if key in first:
            return form
    return collective_table


def table(marker):
    rows, columns, parts = parse(marker)
    lines = [list(line) for line in form_of(parts[0].name)(rows, columns, parts)]
    lines.insert(1, ["---"] * len(lines[0]))
    text = "".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|\n" for line in lines)
    return text.replace(" --- ", "---")
