#!/bin/sh
# Written by ovs-offline: runs {{.Tool}} beside the replica's daemons.
{{- if .Refusal}}
echo {{quote (print .Tool ": " .Refusal)}} >&2
exit 1
{{- else if eq .Tool "ovn-detrace"}}
exec{{range .Exec}} {{quote .}}{{end}} {{.Tool}} "$@"
{{- else}}
# It reads its input for these alone; else a loop that reads lines and runs
# this for each would lose them.
for word do
    case $word in
    - | restore) exec{{range .Exec}} {{quote .}}{{end}} {{.Tool}} "$@" ;;
    esac
done
exec{{range .Exec}} {{quote .}}{{end}} {{.Tool}} "$@" </dev/null
{{- end}}
