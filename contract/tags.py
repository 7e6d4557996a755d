"""Tag keys of everything Trainyard creates; instance metadata allows letters, digits and `+-=.,_:@` in a key, so no `/`."""

DEPLOYMENT = "trainyard:deployment"
JOB = "trainyard:job"
ATTEMPT = "trainyard:attempt"
EXECUTION = "trainyard:execution"
OWNER = "trainyard:owner"
DEADLINE = "trainyard:deadline"
"""UTC epoch seconds, whole."""
NODES = "trainyard:nodes"
MASTER_PORT = "trainyard:master-port"
ROLE = "trainyard:role"
MASTER_ADDRESS = "trainyard:master-address"
"""The one tag that is set after the launch: nobody knows an address before."""
PROTECTED = "trainyard:protected"
"""On an instance or a training that a person wants to keep; any value, best the reason. Nothing of Trainyard's control plane ends it."""
NAME = "Name"
GRID = "trainyard:grid"
LINE = "trainyard:line"
"""Of a training job: its index in the grid, from 0."""

AT_LAUNCH = (DEPLOYMENT, JOB, ATTEMPT, EXECUTION, OWNER, DEADLINE, NODES, MASTER_PORT, ROLE, NAME)
AFTER_LAUNCH = (MASTER_ADDRESS,)

WORKER_ROLE = "worker"
"""The role of every node of a job without roles of its own."""
