"""The environment of a training under mpirun: what the three families of mpirun read, each in words of its own.

PRTE_MCA_* is of Open MPI 5, OMPI_MCA_* of Open MPI 4 and of the library itself, HYDRA_* of MPICH, Intel MPI and MVAPICH.
"""

from __future__ import annotations

LAUNCHER = "TRAINYARD_LAUNCHER"
"""Names the folder of the scripts and of what they write."""
REMOTE, SHARE, PROCESS = "remote", "share", "trainyard-mpi"
"""The script in the place of ssh, the one around mpirun and its daemons, and the one around a process, for whose name the agent looks:
Linux keeps 15 characters."""
OPEN_MPI_HOSTS, HYDRA_HOSTS, ADDRESSES, COMMAND = "hosts", "hydra-hosts", "addresses", "command"


def build_variables(folder: str, nodes: int) -> dict[str, str]:
    """Returns the variables for a `folder` as the training sees it."""
    remote, several = f"{folder}/{REMOTE}", str(nodes)
    return {
        LAUNCHER: folder,
        "PRTE_MCA_plm_ssh_agent": remote,
        "OMPI_MCA_plm_rsh_agent": remote,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": remote,
        "PRTE_MCA_prte_default_hostfile": f"{folder}/{OPEN_MPI_HOSTS}",
        "OMPI_MCA_orte_default_hostfile": f"{folder}/{OPEN_MPI_HOSTS}",
        "HYDRA_HOST_FILE": f"{folder}/{HYDRA_HOSTS}",
        # Daemons stay in the session of the node's training, so that its end is theirs; rank 0 alone starts them, all at once.
        "PRTE_MCA_prte_leave_session_attached": "1",
        "OMPI_MCA_orte_leave_session_attached": "1",
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "PRTE_MCA_plm_ssh_num_concurrent": several,
        "OMPI_MCA_plm_rsh_num_concurrent": several,
        # A process would be bound to one core, and with it the threads of its framework and its data loaders.
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "HYDRA_BINDING": "none",
        # Hydra would give every process the variables of rank 0, its NODE_RANK among them.
        "HYDRA_ENV": "none",
        # Every node of a deep-learning AMI has docker's bridge, with the same address on each.
        "OMPI_MCA_btl_tcp_if_exclude": "127.0.0.0/8,docker0",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


EFA = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}
"""Of libfabric, where the node has EFA: without a name it may choose TCP where the driver answers late, and say nothing."""
