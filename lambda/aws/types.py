"""Reads an entry of DescribeInstanceTypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aws.facts import Accelerators, Card, InstanceType

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import InstanceTypeInfoTypeDef, NetworkInfoTypeDef

NEURON = ("trn", "inf")


def instance_type(entry: InstanceTypeInfoTypeDef) -> InstanceType:
    """Returns the type as policies want it."""
    network = entry.get("NetworkInfo", {})
    cards = _cards(network)
    devices = entry.get("NeuronInfo", {}).get("NeuronDevices", [])
    return InstanceType(
        name=entry["InstanceType"],
        architectures=tuple(entry["ProcessorInfo"]["SupportedArchitectures"]),
        cluster="cluster" in entry.get("PlacementGroupInfo", {}).get("SupportedStrategies", []),
        vcpus=entry.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        accelerators=tuple(_accelerators(entry)),
        # EC2 names the devices of Trn2 UltraServers nowhere.
        neuron="NeuronInfo" in entry or entry["InstanceType"].startswith(NEURON),
        gpus=_gpus(entry),
        neurons=sum(one.get("Count", 0) for one in devices),
        neuron_cores=sum(one.get("Count", 0) * one.get("CoreInfo", {}).get("Count", 0) for one in devices),
        cards=cards,
        efas=_efas(network, len(cards)),
    )


def _cards(network: NetworkInfoTypeDef) -> tuple[Card, ...]:
    found = (
        Card(
            index=one.get("NetworkCardIndex", 0),
            most=one.get("MaximumNetworkInterfaces", 1),
            types=tuple(one.get("InterfaceTypes", [])),
            gbps=one.get("BaselineBandwidthInGbps", 0.0),
        )
        for one in network.get("NetworkCards", [])
    )
    return tuple(sorted(found, key=lambda card: card.index))


def _efas(network: NetworkInfoTypeDef, cards: int) -> int:
    """Where EC2 gives no number, there is an EFA for each card, as on every type whose number it gives but those with a card for
    addresses alone."""
    return network.get("EfaInfo", {}).get("MaximumEfaInterfaces", cards) if network.get("EfaSupported") else 0


def _gpus(entry: InstanceTypeInfoTypeDef) -> int:
    """Those of NVIDIA alone; of a part of a GPU, EC2 counts none."""
    gpus = entry.get("GpuInfo", {}).get("Gpus", [])
    return sum(one.get("Count", 0) for one in gpus if one.get("Manufacturer") == "NVIDIA")


def _accelerators(entry: InstanceTypeInfoTypeDef) -> Iterator[Accelerators]:
    """EC2 names an Inferentia device twice: as a Neuron device, and as an accelerator of inference. The second list has Qualcomm's too,
    for which there is no image of AWS's."""
    for gpu in entry.get("GpuInfo", {}).get("Gpus", []):
        yield Accelerators(name=gpu.get("Name", ""), count=gpu.get("Count", 0))
    for device in entry.get("NeuronInfo", {}).get("NeuronDevices", []):
        yield Accelerators(name=device.get("Name", ""), count=device.get("Count", 0))
