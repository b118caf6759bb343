#!/bin/sh
# Written by ovs-offline: ovs-vsctl on the OVS database as it was recorded,
# which is read-only.
{{- if .Refusal}}
echo {{quote (print .Tool ": " .Refusal)}} >&2
exit 1
{{- else}}
exec {{quote (print .Bin "/ovs-vsctl")}} {{quote (print "--db=" .Recorded)}} "$@"
{{- end}}
