"""Judges one training of a manifest by its fields and the deployment's limits, before AWS is asked anything."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from contract import keys, names, pod_files
from contract.environments import GridEnvironment
from contract.grid import GRIDS, grid_of
from contract.jobs import Launcher
from contract.tag_forms import find_twins
from grid_plan import code
from grid_plan.cluster_lines import write_value
from grid_plan.columns import AUTO, DEFAULTS, MPI, NONE, REQUIRED, SPOT, TORCHRUN, TrainingSpec, sent
from grid_plan.limits import MOST_ARGUMENTS, MOST_CHANNELS, MOST_HYPERPARAMETERS, MOST_TAGS, MOST_VALUE, allowed
from grid_plan.spellings import find_oddity
from grid_plan.wanted import Wanted, bytes_buckets
from job_requests.launchers import NEXT_PROGRAM
from refusals.addresses import Address
from refusals.commands import script
from refusals.expressions import find_misreading
from refusals.launch_words import POD_LINE, SAGEMAKER_LINE, Gang, word_command, word_lone_launch
from refusals.launching import find_fault, find_launches
from refusals.places import is_offered
from refusals.wording import plain

PROSE_VALUE = 256
"""The most characters of a hyperparameter's value in SageMaker's prose; its model says 2,500, which is what it takes today."""
CHECKPOINTS = f"{GRIDS}<grid>/<index, 8 digits>/checkpoints"
"""The form of a line's folder of checkpoints."""


def problems(training: Wanted, types: Collection[str], excused: Collection[str] = ()) -> Iterator[str]:
    """Yields a line per problem. `types` are SageMaker's instance types for trainings; fields in `excused` are present but wrong, so
    they are not reported as missing."""
    may_be = allowed(training.env.limits)
    for name in REQUIRED:
        if not getattr(training.spec, name) and name not in excused:
            where = f"as a column of the manifest, in the input's defaults or as grid.defaults.{name} in cdk.json"
            yield f"{name}: is missing; allowed: {may_be[name]}, {where}"
    yield from _region(training)
    yield from _limits(training, may_be)
    yield from _machines(training, types)
    yield from _together(training, may_be)
    yield from _start(training)
    yield from _launchers(training)
    yield from _image(training)
    yield from _data(training)
    yield from _code(training, excused)
    yield from _checkpoint(training)


def _region(training: Wanted) -> Iterator[str]:
    spec, env = training.spec, training.env
    region = spec.region
    if region not in (AUTO, *env.regions):
        yield f"region: {region} is not a region of {env.deployment}; allowed: {AUTO}, {', '.join(env.regions)}"
    for name in ("kms_key", "volume_kms_key"):
        key = getattr(spec, name) or ""
        parts = key.split(":")
        if key.startswith("arn:") and (len(parts) < 6 or parts[2] != "kms" or parts[3] != region):
            yield f"{name}: {plain(key)} is not a key of the line's region; allowed: its id or its alias, or a key of {region}"


def _limits(training: Wanted, may_be: dict[str, str]) -> Iterator[str]:
    spec, limits = training.spec, training.env.limits
    for name, most in (
        ("instance_count", limits.max_instances),
        ("volume_gb", limits.max_volume_gb),
        ("max_hours", limits.max_hours),
    ):
        value = getattr(spec, name)
        if value > most:
            shown = (
                f"{value:g}" if isinstance(value, float) else str(value)
            )  # no float holds a whole number of 400 digits
            yield f"{name}: {plain(shown)} is too large; allowed: {may_be[name]}"
    wait, hours = spec.max_wait_hours, spec.max_hours
    if wait is None or hours is None:
        return
    if spec.market != SPOT:
        yield f"max_wait_hours: means nothing with the market {spec.market}; allowed: {may_be['max_wait_hours']}"
    elif wait > limits.longest_h:
        yield f"max_wait_hours: {wait:g} is too large; allowed: {may_be['max_wait_hours']}"
    elif wait < hours:
        yield f"max_wait_hours: {wait:g} is less than max_hours, which is {hours:g}; allowed: {may_be['max_wait_hours']}"


def _machines(training: Wanted, types: Collection[str]) -> Iterator[str]:
    kind, patterns = training.spec.instance_type, training.env.limits.instance_types
    if kind is None:
        return
    if kind not in types:
        near = difflib.get_close_matches(kind, types, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        yield f"instance_type: {plain(kind)} is not an instance type of SageMaker training{hint}; allowed: types as in ml.g5.xlarge"
    elif not any(fnmatchcase(kind, pattern) for pattern in patterns):
        may_be = f"{', '.join(patterns)} (grid.limits.instance_types in cdk.json)"
        yield f"instance_type: {kind} is not allowed in this deployment; allowed: {may_be}"


def _together(training: Wanted, may_be: dict[str, str]) -> Iterator[str]:
    """Checks fields that are only allowed together with others."""
    spec = training.spec
    for name in ("processes_per_host", "mpi_options"):
        if getattr(spec, name) is not None and spec.distribution != MPI:
            yield f"{name}: means nothing with the distribution {spec.distribution}; allowed: {may_be[name]}"
    if (count := len(spec.tags or {})) > MOST_TAGS:
        yield f"tags: are {count} with those of the settings (tags in cdk.json); allowed: up to {MOST_TAGS}"
    for one, other in find_twins(spec.tags or {}):
        if one in training.env.tags:
            yield f"tags.{other}: the settings spell it {one} (tags in cdk.json); allowed: {one} with a value, or another key"
        else:
            yield f"tags.{one}: the line has {other} too; allowed: one of them"
    for name in ("subnets", "security_groups"):
        if getattr(spec, name) is not None:
            yield f"{name}: the role of trainings has no right on networks; allowed: {may_be[name]}"
    if spec.channels and spec.data and spec.channel in spec.channels:
        yield f"channels.{spec.channel}: is also the channel of data; allowed: different names"
    if (count := len(training.channels) + bool(spec.code)) > MOST_CHANNELS:
        yield f"channels: are {count} with those of data and code; allowed: up to {MOST_CHANNELS}"
    settings, said = training.launcher | training.toolkit, spec.hyperparameters or {}
    for name in sorted(settings.keys() & said.keys()):
        yield f"hyperparameters.{name}: is set by {'program' if name in training.toolkit else 'distribution'}; allowed: one of them"
    if (count := len(settings.keys() | said.keys())) > MOST_HYPERPARAMETERS:
        yield f"hyperparameters: are {count} with those of sweep, program and distribution; allowed: up to {MOST_HYPERPARAMETERS}"


def _launchers(training: Wanted) -> Iterator[str]:
    """Checks an entry point that starts processes itself: pods start it as often as `distribution` says, and several machines have to be
    joined by it. What an image's own entry point starts is not known."""
    spec, is_pods = training.spec, training.is_pods
    count = spec.instance_count or 1
    fields, gang = POD_LINE if is_pods else SAGEMAKER_LINE, Gang(count=count, who=f"the {count} machines")
    for launch in find_launches([*spec.entrypoint, *(spec.arguments or ())] if spec.entrypoint else []):
        fault = find_fault(launch, {count}, spec.environment or {}) if count > 1 else ""
        if is_pods and spec.distribution != NONE:
            yield (
                f"distribution: {spec.distribution} starts the entrypoint on its own, and that runs {plain(launch.words)}, which starts "
                f"processes too; allowed: {'' if fault else f'{NONE}, or '}{word_command(launch, Launcher(spec.distribution), fields)}"
            )
        elif fault and spec.distribution == NONE:
            yield f"entrypoint: {word_lone_launch(launch, fault, gang, fields)}"


def _start(training: Wanted) -> Iterator[str]:
    """Checks that what reads `distribution` is what starts the program, and that mpirun reads the program's words as one program's."""
    spec = training.spec
    if spec.distribution == NONE:
        return
    replaced = "entrypoint" if spec.entrypoint else "arguments" if spec.arguments and not spec.program else ""
    if replaced and not training.is_pods:
        yield (
            f"distribution: {spec.distribution} is read by AWS's toolkit, whose start {replaced} replaces, so every instance would run its "
            f"command once, and alone; allowed: {_word_program(training)} in place of {replaced}, or {NONE}"
        )
    words = [*(spec.entrypoint or ()), *(spec.arguments or ())] if training.is_pods else []
    given = (spec.hyperparameters or {}) if spec.program else {}
    if spec.distribution == MPI and NEXT_PROGRAM in (*words, *map(write_value, given.values())):
        yield (
            f"distribution: {MPI} would read the word {NEXT_PROGRAM} of the program's arguments as the begin of another program; allowed: "
            f"{TORCHRUN}, {NONE}, or arguments without the word {NEXT_PROGRAM}"
        )


def _word_program(training: Wanted) -> str:
    """Says which program a line could name in place of its command."""
    words = [*(training.spec.entrypoint or ()), *(training.spec.arguments or ())]
    found = script(words) if training.spec.entrypoint else None
    fits = found is not None and re.fullmatch(code.PROGRAM, found)
    file = f"program {found}" if fits else "program (a file of the code or of the image)"
    return f"{file} with hyperparameters as its arguments,"


def _image(training: Wanted) -> Iterator[str]:
    spec, env, image = training.spec, training.env, training.image
    if image is None:
        return
    ours, where = ", ".join(env.repositories), f"image: {plain(spec.image or '')}"
    copied = "copy it into the deployment first (docs/guides/images.md)"
    if training.registries.is_ours(image):
        return
    if training.registries.is_awss(image):
        asked = env.regions if spec.region == AUTO else (spec.region or "",)
        if not any(training.registries.in_region(image, one) for one in asked):
            there = spec.region if spec.region != AUTO else "any region"
            yield (
                f"{where} is not in a repository of {env.deployment}, and no containers of AWS are known in {there}; "
                f"allowed: {ours}"
            )
    elif not image.account:
        yield f"{where} is not in a private ECR registry, and SageMaker pulls only from those; allowed: {copied}"
    elif image.account == env.account:
        yield f"{where} is not a repository of this deployment; allowed: {ours}"
    elif spec.region not in (AUTO, image.region):
        yield (
            f"{where} lies in {image.region}, and SageMaker in {spec.region} pulls only from registries of that region; "
            f"allowed: the same image in {spec.region}, or {copied}"
        )


def _data(training: Wanted) -> Iterator[str]:
    for name, address in training.addresses():
        if not is_readable(Address.parse(address), training.env):
            yield f"{name}: {plain(address)} is not in a place that trainings may read; allowed: {_places(training.env)}"


def _code(training: Wanted, excused: Collection[str]) -> Iterator[str]:
    spec, env = training.spec, training.env
    if spec.program and spec.entrypoint:
        yield "program: is run by AWS's toolkit, which entrypoint replaces; allowed: one of them"
    elif spec.program and spec.arguments:
        yield "program: gets the hyperparameters, and arguments would replace the start of AWS's toolkit; allowed: hyperparameters"
    if spec.program and code.VARIABLE in (spec.environment or {}):
        yield f"environment.{code.VARIABLE}: is set by program; allowed: one of them"
    if not spec.code:
        return
    where = f"code: {plain(spec.code)}"
    most = MOST_ARGUMENTS - len(code.entrypoint(()))
    if spec.entrypoint and len(spec.entrypoint) > most:
        yield f"entrypoint: has {len(spec.entrypoint)} entries, beside those that unpack the code; allowed: up to {most}"
    if not (spec.program or spec.entrypoint or {"program", "entrypoint"} & set(excused)):
        may_be = "program (AWS's containers for SageMaker) or entrypoint (any image) beside it"
        yield f"{where} has neither program nor entrypoint to run it; allowed: {may_be}"
    if code.CHANNEL in training.channels:
        yield f"{where} becomes the channel {code.CHANNEL}, which the line has too; allowed: another name for the channel"
    if not is_offered(Address.parse(spec.code), env.bucket, env.data_buckets):
        ours = [f"s3://{env.bucket}/{keys.UPLOADS}...", *(f"s3://{bucket}/..." for bucket in env.data_buckets)]
        yield f"{where} is not in a place that code may come from; allowed: {', '.join(ours)} (data_buckets in cdk.json)"


def is_readable(address: Address, env: GridEnvironment) -> bool:
    """Whether the role of the trainings may read the address, as far as the deployment knows."""
    if address.bucket in env.data_buckets:
        return True
    if address.bucket == env.bucket:
        return address.key.startswith(keys.UPLOADS)
    return address.bucket in bytes_buckets(env).values() and address.key.startswith((keys.UPLOADS, GRIDS))


def _places(env: GridEnvironment) -> str:
    any_region = names.bytes_bucket(env.deployment, env.account, "<region>")
    ours = [f"s3://{bucket}/{keys.UPLOADS}..." for bucket in (env.bucket, any_region)]
    data = [f"s3://{one}/..." for one in env.data_buckets]
    return f"{', '.join([*data, *ours, f's3://{any_region}/{GRIDS}...'])} (data_buckets in cdk.json)"


def _checkpoint(training: Wanted) -> Iterator[str]:
    spec, env = training.spec, training.env
    if not spec.checkpoint:
        return
    place, ours = Address.parse(spec.checkpoint), bytes_buckets(env)
    home = {bucket: region for region, bucket in ours.items()}.get(place.bucket, "")
    where = f"checkpoint: {plain(spec.checkpoint)}"
    if not home or not grid_of(place.key):
        any_region = names.bytes_bucket(env.deployment, env.account, "<region>")
        yield f"{where} is not a line's folder of checkpoints; allowed: s3://{any_region}/{CHECKPOINTS}"
    elif spec.region not in (AUTO, home):
        yield f"{where} lies in {home}; allowed: s3://{ours.get(spec.region or '', '...')}/{CHECKPOINTS}"


def list_misreadings(spec: TrainingSpec) -> Iterator[str]:
    """Yields a line for each metric whose expression misreads what trainings print."""
    for name, expression in (spec.metrics or {}).items():
        if misreading := find_misreading(expression):
            yield f"metrics.{plain(name)}: {misreading}"


def warnings(training: Wanted) -> Iterator[str]:
    """Yields warnings about what SageMaker may or may not accept, and about what a person may or may not mean. It asks AWS nothing."""
    yield from list_misreadings(training.spec)
    for field in ("hyperparameters", "environment", "tags"):
        for name, value in (getattr(training.spec, field) or {}).items():
            if why := find_oddity(text := sent(value)):
                yield f"{field}.{plain(name)}: {plain(text)} {why}; it is sent unchanged"
    for name, value in (training.spec.hyperparameters or {}).items():
        text, where = sent(value), f"hyperparameters.{plain(name)}"
        if len(text) > PROSE_VALUE:
            yield f"{where}: has {len(text):,} characters; SageMaker documents {PROSE_VALUE}, and takes {MOST_VALUE:,} by its model"
        if "\n" in text or "\r" in text:
            yield f"{where}: holds a line end; SageMaker may refuse it (JSON, with quotes, is safe)"
    yield from _list_idle(training)
    yield from _list_reread(training)


def _list_idle(training: Wanted) -> Iterator[str]:
    """Yields fields that may have no effect on the line, whatever their value."""
    spec, starts = training.spec, "entrypoint" if training.spec.entrypoint else "arguments"
    if spec.hyperparameters and not spec.program and (spec.entrypoint or spec.arguments):
        yield (
            f"hyperparameters: become no arguments, because {starts} replaces the start of AWS's toolkit; the program finds them in "
            f"{pod_files.INPUT}/hyperparameters.json"
        )
    if spec.channel != DEFAULTS["channel"] and not spec.data:
        yield f"channel: {spec.channel} would be the channel of data, and the line has no data"
    is_own = training.image is not None and not training.registries.is_awss(training.image)
    if spec.distribution != NONE and is_own and not training.is_pods:
        yield (
            f"distribution: is read by AWS's toolkit alone; where {plain(spec.image or '')} does not have it, every instance trains alone"
        )
    own = [name for name in spec.tags or {} if name not in training.env.tags]
    if training.is_pods and own:
        yield f"tags.{plain(own[0])}: no machine and no pod of Kubernetes gets tags of a line; the plan alone keeps them"


def _list_reread(training: Wanted) -> Iterator[str]:
    """Yields hyperparameters that AWS's toolkit hands to the program in another form than the other backends do."""
    spec = training.spec
    if training.is_pods or spec.entrypoint or (spec.arguments and not spec.program):
        return
    for name, text in training.hyperparameters.items():
        wanted, found = write_value((spec.hyperparameters or {})[name]), code.read_by_toolkit(text)
        if found == wanted or name.startswith(code.TOOLKITS):
            continue
        where = f"hyperparameters.{plain(name)}: {plain(wanted)}"
        if found is None:
            yield f"{where} is nested too deeply for AWS's toolkit, with which the training would fail"
        elif spec.program:
            yield f"{where} arrives as {plain(found)}, because AWS's toolkit reads JSON; a text, in quotes, arrives unchanged"
        else:
            yield f"{where} arrives as {plain(found)} if the image has AWS's toolkit, which reads JSON; beside program it arrives unchanged"
