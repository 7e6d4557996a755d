"""Maps each error code of RunInstances to what it means for the ladder, and to a sentence for people.

The codes are those of "Error codes for the Amazon EC2 API"
(https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html) that a launch of ours can meet: RunInstances with a subnet, an
image, a launch template, an instance profile, disks, tags, perhaps a placement group, a reservation or the spot market. Codes that begin
as throttles of other services do are there as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from contract.intents import LaunchAnswer, LaunchOutcome


class Reach(str, Enum):
    """What an answer closes, in the region of the rung that was asked."""

    RUNG = "rung"
    """That rung alone."""
    KIND = "kind"
    """Its type, in its market or reservation."""
    FAMILY = "family"
    """The types that share its quota, in its market."""
    ZONE = "zone"
    """Everything in its zone."""
    REGION = "region"
    """Everything in its region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What some codes say."""

    outcome: LaunchOutcome
    reach: Reach = Reach.RUNG
    says: str
    """For a person: what is wrong, and what to do."""
    passes: bool = False
    """Whether the refusal may pass by itself within minutes, because what it is about has just been made or changed."""
    ends_walk: bool = False
    """Whether no other rung is asked after it: what was launched with the same token may run."""


CAPACITY, QUOTA, MISTAKE = LaunchOutcome.NO_CAPACITY, LaunchOutcome.QUOTA, LaunchOutcome.MISTAKE
TABLE: tuple[tuple[Meaning, str], ...] = (
    # Another rung may do, and so may the same one in the next walk.
    (
        Meaning(
            outcome=CAPACITY,
            says="EC2 has too few of these machines free there: allow more types, zones or regions, or wait with max_wait_hours.",
        ),
        "InsufficientInstanceCapacity InsufficientCapacity InsufficientHostCapacity InsufficientCapacityOnHost UnfulfillableCapacity "
        "InsufficientCapacityOnOutpost",
    ),
    (
        Meaning(outcome=CAPACITY, says="The zone does not offer the type, or does not offer it now: allow other zones or types."),
        "Unsupported InvalidAvailabilityZone InvalidZone.NotFound",
    ),
    (
        Meaning(outcome=CAPACITY, says="The spot price is above what the job may pay: allow other types, or on-demand."),
        "SpotMaxPriceTooLow",
    ),
    (
        Meaning(outcome=CAPACITY, says="The reservation has too few machines free: ask for fewer nodes, or wait until others end."),
        "InsufficientReservedInstanceCapacity InsufficientReservedInstancesCapacity ReservationCapacityExceeded",
    ),
    (
        Meaning(outcome=CAPACITY, says="The reservation has not begun yet."),
        "InvalidCapacityReservationState.PendingActivation",
    ),
    (
        Meaning(
            outcome=CAPACITY,
            says="The subnet of the zone has too few free addresses: end what uses them, or let the deployment have larger subnets.",
        ),
        "InsufficientFreeAddressesInSubnet InsufficientAddressCapacity",
    ),
    (
        Meaning(outcome=CAPACITY, says="EBS has no room for the disks in the zone: allow other zones, or take smaller disks."),
        "InsufficientVolumeCapacity VolumeTypeNotAvailableInZone",
    ),
    # The account's limits. Other regions have limits of their own.
    (
        Meaning(
            outcome=QUOTA,
            reach=Reach.FAMILY,
            says="The account's quota of on-demand vCPUs for this family of types is used up in the region: raise it in Service Quotas "
            '(Amazon EC2, "Running On-Demand ... instances"), or allow other families or regions.',
        ),
        "VcpuLimitExceeded InstanceLimitExceeded",
    ),
    (
        Meaning(
            outcome=QUOTA,
            reach=Reach.FAMILY,
            says="The account's quota of spot vCPUs for this family of types is used up in the region: raise it in Service Quotas "
            '(Amazon EC2, "All ... Spot Instance Requests"), or allow on-demand, other families or regions.',
        ),
        "MaxSpotInstanceCountExceeded",
    ),
    (
        Meaning(
            outcome=QUOTA,
            reach=Reach.REGION,
            says="The account's quota of IOPS of disks is used up in the region: raise it in Service Quotas (Amazon EBS), ask for less "
            "volume_iops, or allow other regions.",
        ),
        "MaxIOPSLimitExceeded",
    ),
    (
        Meaning(
            outcome=QUOTA,
            reach=Reach.REGION,
            says="The account's quota of disk storage is used up in the region: raise it in Service Quotas (Amazon EBS), ask for less "
            "volume_gb, or allow other regions.",
        ),
        "VolumeLimitExceeded",
    ),
    (
        Meaning(
            outcome=QUOTA,
            reach=Reach.REGION,
            says="The account's quota of network interfaces is used up in the region: raise it in Service Quotas (Amazon VPC), or allow "
            "other regions.",
        ),
        "NetworkInterfaceLimitExceeded",
    ),
    (
        Meaning(
            outcome=QUOTA,
            reach=Reach.REGION,
            says="A quota of the account is used up in the region, as EC2's words say: raise it in Service Quotas, or allow other "
            "regions.",
        ),
        "ResourceLimitExceeded PlacementGroupLimitExceeded",
    ),
    # The account itself.
    (
        Meaning(
            outcome=LaunchOutcome.CLOSED,
            reach=Reach.REGION,
            says="AWS has not verified the account for the region yet: that takes minutes to hours; then start the job again, or ask AWS "
            "Support.",
        ),
        "PendingVerification",
    ),
    (
        Meaning(
            outcome=LaunchOutcome.CLOSED,
            reach=Reach.REGION,
            says="The account is not subscribed to EC2, to the region or to the image's product: an administrator has to enable it.",
        ),
        "OptInRequired",
    ),
    (
        Meaning(
            outcome=LaunchOutcome.CLOSED,
            reach=Reach.REGION,
            says="AWS has blocked the account, or disabled launches in it: an administrator has to ask AWS Support.",
        ),
        "Blocked AccountDisabled",
    ),
    # It may have launched, or the same call may do so later: it is sent again.
    (
        Meaning(outcome=LaunchOutcome.UNKNOWN, says="EC2 was busy or had an error of its own: the same call is sent again."),
        "RequestLimitExceeded Throttling ThrottlingException ThrottledException RequestThrottled RequestThrottledException "
        "EC2ThrottledException TooManyRequestsException BandwidthLimitExceeded SlowDown RetryableError Unavailable ServiceUnavailable "
        "InternalError InternalFailure ServerInternal InternalServerError RequestTimeout RequestTimeoutException RequestExpired "
        "InvalidSecurity.RequestHasExpired ExpiredToken ExpiredTokenException 500 502 503 504",
    ),
    (
        Meaning(outcome=LaunchOutcome.RENEW, says="What the call had launched has ended: the place is asked anew."),
        "IdempotentInstanceTerminated",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            ends_walk=True,
            says="The same launch was sent before with other parameters, and what it launched may run: start the job again.",
        ),
        "IdempotentParameterMismatch",
    ),
    # What has just been made, or is being changed: it is asked again in the next walks.
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.ZONE,
            passes=True,
            says="EC2 does not know the deployment's subnet of the zone: deploy the stack of the region again.",
        ),
        "InvalidSubnet InvalidSubnetID.NotFound InvalidSubnetId.NotFound",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.REGION,
            passes=True,
            says="EC2 does not know a resource of the deployment in the region, such as its launch template, security group or instance "
            "profile: deploy the stack of the region again.",
        ),
        "InvalidLaunchTemplateId.NotFound InvalidLaunchTemplateId.VersionNotFound InvalidLaunchTemplateName.NotFoundException "
        "InvalidGroup.NotFound InvalidSecurityGroupID.NotFound InvalidSecurityGroupId.NotFound InvalidVpcID.NotFound "
        "InvalidIamInstanceProfile InvalidIAMInstanceProfile InvalidIamInstanceProfileArn.Malformed InvalidIamInstanceProfile.NotFound",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.ZONE,
            passes=True,
            says="The placement group of the launch is not there yet, or is being changed.",
        ),
        "InvalidPlacementGroup.Unknown InvalidPlacementGroupId.Malformed InvalidPlacementGroup.InUse",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            passes=True,
            says="EC2 cannot use the machine's image, or one of its snapshots, in the region: it is missing, not ready, or not shared with "
            "the account.",
        ),
        "InvalidAMIID.NotFound InvalidAMIID.Unavailable InvalidSnapshot.NotFound",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            passes=True,
            says="Something that the launch uses is being changed, as EC2's words say.",
        ),
        "IncorrectState IncorrectInstanceState InvalidState InvalidHostState ConcurrentTagAccess CreditSpecificationUpdateInProgress "
        "DependencyViolation Resource.AlreadyAssigned Resource.AlreadyAssociated InvalidIPAddress.InUse InvalidNetworkInterface.InUse "
        "InvalidNetworkInterfaceID.NotFound InvalidNetworkInterface.NotFound InvalidInstanceID.NotFound",
    ),
    # Rights and keys.
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            says="A policy denies the launch: one of the account's organization, or of the launcher's role. EC2's words say what an "
            "administrator has to allow.",
        ),
        "UnauthorizedOperation AuthFailure OperationNotPermitted AccessDenied AccessDeniedException "
        "DeclarativePoliciesAccessDeniedException",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            says="The account has no service-linked role for spot: an administrator has to create it (aws iam create-service-linked-role "
            "--aws-service-name spot.amazonaws.com), or the job takes on-demand.",
        ),
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.REGION,
            says="EC2 does not accept the launcher's credentials: an administrator has to look at the role of the launcher.",
        ),
        "InvalidClientTokenId MissingAuthenticationToken SignatureDoesNotMatch IncompleteSignature UnrecognizedClientException",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.REGION,
            says="The key of the disks cannot be used in the region: it is disabled, or its policy does not let the launcher's role and "
            "spot use it (docs/guides/landing-zones.md).",
        ),
        "CustomerKeyHasBeenRevoked Client.InternalError InvalidKMSKey.InvalidState InvalidKMSKey.NotFound KMSKeyNotAccessibleFault "
        "InvalidKmsKey.NotFound InvalidKmsKey.InvalidState",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.REGION,
            says="A tag policy of the organization, or a limit of tags, does not allow the tags of the launch: change tags in the "
            "request or in cdk.json.",
        ),
        "TagPolicyViolation TagLimitExceeded InvalidTagKey.Malformed",
    ),
    # What the request asks for.
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.REGION,
            says="The launch is for more nodes than EC2 takes in one call: ask for fewer.",
        ),
        "ResourceCountExceeded RequestResourceCountExceeded",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            says="The type does not take the disks of the launch: EC2's words say what is wrong with them.",
        ),
        "InvalidBlockDeviceMapping EncryptedVolumesNotSupported BootForVolumeTypeUnsupported UnknownVolumeType VolumeIOPSLimit "
        "AttachmentLimitExceeded NonEBSInstance",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            says="The type does not take the network of the launch: EC2's words say what is wrong with it.",
        ),
        "InvalidInterface.IpAddressLimitExceeded PrivateIpAddressLimitExceeded SecurityGroupsPerInstanceLimitExceeded "
        "SecurityGroupsPerInterfaceLimitExceeded SecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded VPCIdNotSpecified "
        "VPCResourceNotSpecified NetworkInterfaceNotSupported",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            says="The reservation cannot be used for the launch: it is not there, has ended, or is of another kind.",
        ),
        "InvalidCapacityReservationId.NotFound InvalidCapacityReservationId.Malformed InvalidCapacityReservationState "
        "InvalidReservationID.NotFound InvalidReservationID.Malformed InvalidLaunchTargets UnsupportedException",
    ),
    (
        Meaning(
            outcome=MISTAKE,
            reach=Reach.KIND,
            says="EC2 cannot launch the type with this image, market or option: EC2's words say which; allow other types.",
        ),
        "UnsupportedOperation InvalidInstanceType InvalidInstanceFamily InvalidInstanceAttributeValue InvalidTenancy UnsupportedTenancy "
        "UnsupportedHostConfiguration UnsupportedInstanceTypeOnHost UnsupportedHibernationConfiguration "
        "InstanceCreditSpecification.NotSupported InvalidCpuCredits InvalidProductInfo InvalidKernelId.Malformed "
        "InvalidRamDiskId.Malformed IncompatibleHostRequirements UnavailableHostRequirements ZonesMismatched",
    ),
    (
        Meaning(outcome=MISTAKE, reach=Reach.KIND, says="EC2 does not accept the launch as it is: EC2's words say which part of it."),
        "InvalidParameter InvalidParameterCombination InvalidParameterDependency InvalidParameterValue ClientInvalidParameterValue "
        "InvalidInput InvalidRequest InvalidCharacter InvalidAction InvalidQueryParameter MalformedQueryString MissingAction MissingInput "
        "MissingParameter UnknownParameter UnsupportedProtocol ValidationError InvalidUserData.Malformed InvalidAMIID.Malformed "
        "InvalidSubnetID.Malformed InvalidGroupId.Malformed InvalidSecurityGroupId.Malformed InvalidLaunchTemplateId.Malformed "
        "InvalidLaunchTemplateName.MalformedException InvalidSnapshotID.Malformed InvalidKeyPair.NotFound InvalidKey.Format "
        "InvalidClientToken InvalidRegion InvalidID NoSuchVersion DryRunOperation",
    ),
)  # fmt: skip
MEANINGS = {code: meaning for meaning, codes in TABLE for code in codes.split()}
NEW_LIMIT = MEANINGS["ResourceLimitExceeded"]
NEW_CAPACITY = MEANINGS["InsufficientInstanceCapacity"]
BUSY = MEANINGS["InternalError"]
NO_PROFILE = MEANINGS["InvalidIamInstanceProfile"]
UNSEEN = Meaning(outcome=MISTAKE, reach=Reach.KIND, says="")
"""The safe default, of a code that is neither known nor of a known form. EC2 answers a client's error before it launches anything, and
mostly for what differs by type: other types are asked, the same one is not, and no walk waits for what will not pass."""
PASSES_WALKS = 5
"""Walks of an attempt, a minute each, in which a refusal that may pass counts as missing capacity."""


def find_meaning(code: str, message: str = "", status: int = 0) -> Meaning:
    """Returns what an error code means. The message matters for a new instance profile alone, for which EC2 has no code of its own.

    A code that is not in the table is judged by its form, as names of limits and of missing capacity are alike, and then by the HTTP
    status: if EC2 says that the fault is its own, it may have launched all the same."""
    if code == "InvalidParameterValue" and "iaminstanceprofile" in message.lower():
        return NO_PROFILE
    short = code.removeprefix("Client.").removeprefix("Server.")
    if known := MEANINGS.get(code) or MEANINGS.get(short):
        return known
    if "Throttl" in short:
        return BUSY
    if short.startswith("Insufficient") and short.endswith(("Capacity", "CapacityException")):
        return NEW_CAPACITY
    if short.removesuffix("Exception").endswith(("LimitExceeded", "CountExceeded")):
        return NEW_LIMIT
    return BUSY if status >= 500 else UNSEEN


def explain_answers(answers: Iterable[LaunchAnswer]) -> str:
    """Returns for people what these answers mean, each sentence once; nothing of codes that are not known."""
    known = (find_meaning(one.code, one.message) for one in answers if one.code)
    return " ".join(dict.fromkeys(one.says for one in known if one.says))
