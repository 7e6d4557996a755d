"""Rejects a deploy that removes a region while its stack exists, because no later deploy would update or destroy that stack."""
