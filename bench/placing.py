"""placing: where `pnetc place` puts the one register of a ResNet on two workers, by a profile of this machine. Imported by cuts,
paper_speedup.
"""
import json
import os

import common

# Layers of the first group of residual units: the paper's cut. Two stages are busy while one is profiled.
FIRST_GROUP = {20: 7, 56: 19, 110: 37, 224: 75, 362: 121}


def profile(depth, settings, options, exact=False):
    """The arguments that give `check` and `place` a profile, measured now unless there is one. options.data: images."""
    path = os.path.join(common.FOLDER, f"resnet{depth}_batch{settings['train.batch']}{'_exact' if exact else ''}.prof")
    if options.fresh or not os.path.exists(path):
        print(f"profile of resnet{depth}{', direct convolutions' if exact else ''}", flush=True)
        run = common.Run("profile", "resnet",
                         {**settings, "pipeline.registers": common.placement((FIRST_GROUP[depth],))}, {"depth": depth})
        common.command([common.PNETC, "profile", *run.arguments, "-o", path, "--steps", "8", "--", "--data", options.data,
                        *(["--exact"] if exact else [])])
    return ["--profile", path]


def register(depth, settings, profiled):
    """As the setting `registers` has it."""
    run = common.Run("place", "resnet", {**settings, "pipeline.registers": "none"}, {"depth": depth})
    said = json.loads(common.command([common.PNETC, "place", "--json", "--workers", "2", *run.arguments, *profiled]))
    placement = [p for p in said["placements"] if p["stages"] == 2][0]
    return f'after("{placement["registers_after"][0]}")'
