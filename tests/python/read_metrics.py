"""Parses Prometheus text from standard input with Debian's python3-prometheus-client; prints JSON.

Usage: read_metrics.py text|openmetrics
"""

import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

text = sys.stdin.buffer.read().decode("utf-8")
parse = openmetrics_parser.text_string_to_metric_families if sys.argv[1] == "openmetrics" else parser.text_string_to_metric_families
families = []
for family in parse(text):
    families.append(
        {
            "name": family.name,
            "type": family.type,
            "help": family.documentation,
            "samples": [[sample.name, sample.labels, repr(sample.value)] for sample in family.samples],
        }
    )
json.dump(families, sys.stdout)
