"""Tests of Trainyard: sentences, the negative ones outnumber the positive."""
