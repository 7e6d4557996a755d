"""Speed and memory beside the peers, in the same run on the same machine; never part of the tests."""
