"""Tests of Collect, Stop and Report of a grid."""
