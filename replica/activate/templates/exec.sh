#!/bin/sh
# Written by ovs-offline: runs {{.Tool}} beside the replica's daemons.
{{- if .Refusal}}
echo {{quote (print .Tool ": " .Refusal)}} >&2
exit 1
{{- else if eq .Tool "ovn-detrace"}}
exec{{range .Exec}} {{quote .}}{{end}} {{.Tool}} "$@"
{{- else}}
# Only these tools read standard input; otherwise a shell loop that reads lines
# and runs this wrapper for each would lose lines.
for word do
    case $word in
    - | restore) exec{{range .Exec}} {{quote .}}{{end}} {{.Tool}}{{with .Timeout}} {{.}}{{end}} "$@" ;;
    esac
done
exec{{range .Exec}} {{quote .}}{{end}} {{.Tool}}{{with .Timeout}} {{.}}{{end}} "$@" </dev/null
{{- end}}
