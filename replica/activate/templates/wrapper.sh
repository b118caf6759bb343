#!/bin/sh
# Written by ovs-offline: runs this host's {{.Tool}} against the replica.
{{- if .Refusal}}
echo {{quote (print .Tool ": " .Refusal)}} >&2
exit 1
{{- else}}
OVS_RUNDIR={{quote .OVSRunDir}}
OVN_RUNDIR={{quote .OVNRunDir}}
export OVS_RUNDIR OVN_RUNDIR
{{- if .NB}}
OVN_NB_DB={{quote .NB}}
export OVN_NB_DB
{{- else}}
unset OVN_NB_DB
{{- end}}
{{- if .SB}}
OVN_SB_DB={{quote .SB}}
export OVN_SB_DB
{{- else}}
unset OVN_SB_DB
{{- end}}
# These variables would direct the tools to another daemon or database.
unset OVN_NB_DAEMON OVN_SB_DAEMON OVN_NBCTL_OPTIONS OVN_SBCTL_OPTIONS

# The real tool: never this wrapper, nor another replica's. An ordinary user's
# PATH may lack the directories at the end.
tool=
rest=${PATH-}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:
while [ -z "$tool" ] && [ -n "$rest" ]; do
    dir=${rest%%:*}
    rest=${rest#*:}
    case $dir in
    /*)
        if [ -f "$dir/{{.Tool}}" ] && [ -x "$dir/{{.Tool}}" ] && ! [ -e "$dir/{{.Mark}}" ]; then
            tool=$dir/{{.Tool}}
        fi
        ;;
    esac
done
if [ -z "$tool" ]; then
    echo {{quote (print .Tool " is not installed: " .Hint)}} >&2
    exit 127
fi
{{- if .Warning}}
# The tool can log hundreds of lines, so the warning comes last.
"$tool" "$@"
status=$?
printf '%s\n' {{quote .Warning}} >&2
exit "$status"
{{- else if .Ended}}
"$tool"{{with .Timeout}} {{.}}{{end}} "$@"
status=$?
# A process that has ended, or is ending, has no arguments.
if [ "$status" -ne 0 ] && IFS= read -r pid 2>/dev/null <"$OVS_RUNDIR/ovs-vswitchd.pid" && ! grep -q . "/proc/$pid/cmdline" 2>/dev/null; then
    printf '%s\n' {{quote .Ended}} >&2
{{- with .Advice}}
elif [ "$status" -eq {{$.Late}} ]; then
    printf '%s\n' {{quote .}} >&2
{{- end}}
fi
exit "$status"
{{- else if ne .Tool "ovn-detrace"}}
exec "$tool" "$@"
{{- else}}
"$tool" "$@"
status=$?
if [ "$status" -ne 0 ]; then
    # It is a Python program, whose error for a missing library is vague.
    IFS= read -r first <"$tool" || :
    interpreter=${first#'#!'}
    set -f
    if [ "$interpreter" != "$first" ] && ! $interpreter -c 'import ovs' </dev/null >/dev/null 2>&1; then
        echo "ovn-detrace needs OVS's Python library: install python3-openvswitch (the package in Debian, Ubuntu and Fedora)" >&2
    fi
fi
exit "$status"
{{- end}}
{{- end}}
