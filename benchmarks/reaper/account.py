"""A large account as EC2 describes it: instances of ours and strangers, each rendered when its page is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from contract import tags

ACCOUNT = "123456789012"
REGION = "eu-central-1"
DEPLOYMENT = "trainyard"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{DEPLOYMENT}-train"
PROFILE = f"arn:aws:iam::{ACCOUNT}:instance-profile/{DEPLOYMENT}-node"
NODES = 4
"""Instances of a job."""
ORPHAN_EVERY, LATE_EVERY = 1_000, 2_500
"""Every so many jobs one whose execution is over, and one whose deadline has passed."""
HOUR = 3600

# One g5 instance as DescribeInstances shows it: 4.6 KB with our tags. Shape: the EC2 API reference; values: invented.
INSTANCE = """<item><instanceId>{id}</instanceId><imageId>ami-0123456789abcdef0</imageId>
<instanceState><code>16</code><name>running</name></instanceState>
<privateDnsName>ip-{dashed}.eu-central-1.compute.internal</privateDnsName><dnsName/><reason/>
<amiLaunchIndex>{rank}</amiLaunchIndex><productCodes/><instanceType>g5.xlarge</instanceType>
<launchTime>{launched}</launchTime>
<placement><availabilityZone>eu-central-1a</availabilityZone><availabilityZoneId>euc1-az2</availabilityZoneId>
<groupName>trainyard-a-1</groupName><groupId>pg-0123456789abcdef0</groupId><tenancy>default</tenancy></placement>
<monitoring><state>disabled</state></monitoring><subnetId>subnet-0123456789abcdef0</subnetId>
<vpcId>vpc-0123456789abcdef0</vpcId><privateIpAddress>{address}</privateIpAddress><sourceDestCheck>true</sourceDestCheck>
<groupSet><item><groupId>sg-0123456789abcdef0</groupId><groupName>nodes</groupName></item></groupSet>
<architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType><rootDeviceName>/dev/xvda</rootDeviceName>
<blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><volumeId>vol-{tail}</volumeId><status>attached</status>
<attachTime>{launched}</attachTime><deleteOnTermination>true</deleteOnTermination></ebs></item></blockDeviceMapping>
<virtualizationType>hvm</virtualizationType><clientToken>{token}</clientToken><tagSet>{tags}</tagSet>
<hypervisor>xen</hypervisor><networkInterfaceSet><item><networkInterfaceId>eni-{tail}</networkInterfaceId>
<subnetId>subnet-0123456789abcdef0</subnetId><vpcId>vpc-0123456789abcdef0</vpcId><description/><ownerId>123456789012</ownerId>
<status>in-use</status><macAddress>0a:00:00:00:00:01</macAddress><privateIpAddress>{address}</privateIpAddress>
<privateDnsName>ip-{dashed}.eu-central-1.compute.internal</privateDnsName><sourceDestCheck>true</sourceDestCheck>
<groupSet><item><groupId>sg-0123456789abcdef0</groupId><groupName>nodes</groupName></item></groupSet>
<attachment><attachmentId>eni-attach-{tail}</attachmentId><deviceIndex>0</deviceIndex><networkCardIndex>0</networkCardIndex>
<status>attached</status><attachTime>{launched}</attachTime><deleteOnTermination>true</deleteOnTermination></attachment>
<privateIpAddressesSet><item><privateIpAddress>{address}</privateIpAddress>
<privateDnsName>ip-{dashed}.eu-central-1.compute.internal</privateDnsName><primary>true</primary></item></privateIpAddressesSet>
<ipv6AddressesSet/><interfaceType>interface</interfaceType><operator><managed>false</managed></operator></item>
</networkInterfaceSet><iamInstanceProfile><arn>{profile}</arn><id>AIPA0123456789ABCDEF0</id></iamInstanceProfile>
<ebsOptimized>true</ebsOptimized><enaSupport>true</enaSupport>
<cpuOptions><coreCount>2</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions>
<capacityReservationSpecification><capacityReservationPreference>open</capacityReservationPreference>
</capacityReservationSpecification><hibernationOptions><configured>false</configured></hibernationOptions>
<metadataOptions><state>applied</state><httpTokens>required</httpTokens><httpPutResponseHopLimit>1</httpPutResponseHopLimit>
<httpEndpoint>enabled</httpEndpoint><httpProtocolIpv6>disabled</httpProtocolIpv6>
<instanceMetadataTags>enabled</instanceMetadataTags></metadataOptions><enclaveOptions><enabled>false</enabled></enclaveOptions>
<platformDetails>Linux/UNIX</platformDetails><usageOperation>RunInstances</usageOperation>
<usageOperationUpdateTime>{launched}</usageOperationUpdateTime>
<privateDnsNameOptions><hostnameType>ip-name</hostnameType><enableResourceNameDnsARecord>false</enableResourceNameDnsARecord>
<enableResourceNameDnsAAAARecord>false</enableResourceNameDnsAAAARecord></privateDnsNameOptions>
<maintenanceOptions><autoRecovery>default</autoRecovery></maintenanceOptions><currentInstanceBootMode>uefi</currentInstanceBootMode>
<networkPerformanceOptions><bandwidthWeighting>default</bandwidthWeighting></networkPerformanceOptions>
<operator><managed>false</managed></operator></item>""".replace("\n", "")
TAG = "<item><key>{}</key><value>{}</value></item>"
RESERVATION = "<item><reservationId>r-{}</reservationId><ownerId>123456789012</ownerId><groupSet/><instancesSet>{}</instancesSet></item>"


@dataclass(frozen=True, slots=True)
class Account:
    """`ours` instances of jobs of four nodes, then `strangers` of another team; `now` in epoch seconds."""

    ours: int
    strangers: int
    now: int
    launched: str

    @property
    def size(self) -> int:
        return self.ours + self.strangers

    def execution(self, job: int) -> str:
        return f"{MACHINE.replace(':stateMachine:', ':execution:')}:job-{job:06d}"

    def running(self, job: int) -> bool:
        return job % ORPHAN_EVERY != 1

    def deadline(self, job: int) -> int:
        return self.now - HOUR if job % LATE_EVERY == 2 else self.now + HOUR

    def late(self) -> int:
        """How many instances a rule on deadlines finds."""
        return sum(self.deadline(number // NODES) < self.now for number in range(self.ours))

    def wanted(self, filters: dict[str, list[str]]) -> range:
        """Numbers of the instances that fit the filters of a DescribeInstances. Raises KeyError for a filter that is not known."""
        found = range(self.size)
        for name, values in filters.items():
            if name in (f"tag:{tags.DEPLOYMENT}", "iam-instance-profile.arn"):
                mine = DEPLOYMENT if name.startswith("tag:") else PROFILE
                found = range(self.ours) if mine in values else range(0)
            elif name == "instance-state-name":
                found = found if "running" in values else range(0)
            else:
                raise KeyError(name)
        return found

    def page(self, numbers: range) -> str:
        """Reservations in XML, a job's nodes in one each."""
        return "".join(RESERVATION.format(f"{number:017x}", self.instance(number)) for number in numbers)

    def instance(self, number: int) -> str:
        tail = f"{number:017x}"
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        return INSTANCE.format(
            id=f"i-{tail}",
            tail=tail,
            rank=number % NODES,
            address=address,
            dashed=address.replace(".", "-"),
            launched=self.launched,
            token=f"{number:064x}",
            profile=PROFILE if number < self.ours else f"arn:aws:iam::{ACCOUNT}:instance-profile/other",
            tags="".join(TAG.format(*one) for one in self._tags(number)),
        )

    def _tags(self, number: int) -> Iterator[tuple[str, str]]:
        if number >= self.ours:
            yield from (("Name", "web"), ("team", "shop"), ("stage", "production"))
            return
        job = number // NODES
        yield tags.DEPLOYMENT, DEPLOYMENT
        yield tags.JOB, f"job-{job:06d}"
        yield tags.ATTEMPT, "1"
        yield tags.EXECUTION, self.execution(job)
        yield tags.OWNER, "team"
        yield tags.DEADLINE, str(self.deadline(job))
        yield tags.NODES, str(NODES)
        yield tags.MASTER_PORT, "29500"
        yield tags.ROLE, tags.WORKER_ROLE
        yield tags.NAME, f"job-{job:06d}"
        yield tags.MASTER_ADDRESS, "10.0.0.1"

    def executions(self, start: int, most: int) -> str:
        """A page of ListExecutions by status RUNNING, from job number `start`."""
        jobs = range(self.ours // NODES)
        page = [job for job in jobs[start : start + most] if self.running(job)]
        rest = {"nextToken": str(start + most)} if start + most < len(jobs) else {}
        return json.dumps({"executions": [self.shown(job) for job in page], **rest})

    def shown(self, job: int) -> dict[str, object]:
        """An execution, as ListExecutions and DescribeExecution have it."""
        common = {
            "executionArn": self.execution(job),
            "stateMachineArn": MACHINE,
            "name": f"job-{job:06d}",
            "startDate": float(self.now - 2 * HOUR),
        }
        if self.running(job):
            return {**common, "status": "RUNNING"}
        return {**common, "status": "ABORTED", "stopDate": float(self.now - HOUR)}
