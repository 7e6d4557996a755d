"""Rejects a deploy that removes a region while its stack exists, because no later deploy would update or destroy that stack; and one
whose nodes could not run in the network that the settings name."""
