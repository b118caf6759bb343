# Written by ovs-offline. Source it from bash or zsh; "deactivate" undoes it.

# A replica that is already active, this one or another, is deactivated first.
if typeset -f _ovs_offline_leave >/dev/null; then
    _ovs_offline_leave
fi

# Prints the state of a variable: unset, plain or exported.
function _ovs_offline_how {
    if eval "[ -z \"\${$1+set}\" ]"; then
        echo unset
    elif [ -n "${ZSH_VERSION-}" ]; then
        # In quotes, because bash can't parse it.
        eval 'case ${(Pt)1} in *export*) echo exported ;; *) echo plain ;; esac'
    else
        set -- "$(declare -p "$1")"
        set -- "${1#declare -}"
        case ${1%% *} in
        *x*) echo exported ;;
        *) echo plain ;;
        esac
    fi
}

# -g makes the variables global; zsh warns without it.
typeset -g _ovs_offline_name _OVS_OFFLINE_OLD_deactivate
for _ovs_offline_name in{{range .Saved}} {{.}}{{end}}; do
    eval "typeset -g _OVS_OFFLINE_HOW_$_ovs_offline_name=\"\$(_ovs_offline_how $_ovs_offline_name)\""
    eval "typeset -g _OVS_OFFLINE_OLD_$_ovs_offline_name=\"\${$_ovs_offline_name-}\""
done
unset _ovs_offline_name
unset -f _ovs_offline_how
# A Python environment, for example, has a function of the same name.
_OVS_OFFLINE_OLD_deactivate=$(typeset -f deactivate || :)

function _ovs_offline_leave {
    local _ovs_offline_name _ovs_offline_how _ovs_offline_function
    for _ovs_offline_name in{{range .Saved}} {{.}}{{end}}; do
        eval "_ovs_offline_how=\$_OVS_OFFLINE_HOW_$_ovs_offline_name"
        if [ "$_ovs_offline_how" = unset ]; then
            unset "$_ovs_offline_name"
        else
            eval "$_ovs_offline_name=\$_OVS_OFFLINE_OLD_$_ovs_offline_name"
            if [ "$_ovs_offline_how" = exported ]; then
                export "${_ovs_offline_name?}"
            else
                typeset -g +x "$_ovs_offline_name"
            fi
        fi
        unset "_OVS_OFFLINE_HOW_$_ovs_offline_name" "_OVS_OFFLINE_OLD_$_ovs_offline_name"
    done
    _ovs_offline_function=$_OVS_OFFLINE_OLD_deactivate
    unset _OVS_OFFLINE_OLD_deactivate
    unset -f _ovs_offline_leave deactivate || :
    if [ -n "$_ovs_offline_function" ]; then
        eval "$_ovs_offline_function"
    fi
    hash -r 2>/dev/null || :
}

function deactivate {
    _ovs_offline_leave
}

PATH={{quote .Bin}}${PATH:+:$PATH}
export PATH
PS1="{{.Prompt}} ${PS1-}"
export OVS_RUNDIR={{quote .OVSRunDir}}
export OVN_RUNDIR={{quote .OVNRunDir}}
{{- if .NB}}
export OVN_NB_DB={{quote .NB}}
{{- else}}
unset OVN_NB_DB
{{- end}}
{{- if .SB}}
export OVN_SB_DB={{quote .SB}}
{{- else}}
unset OVN_SB_DB
{{- end}}
# These variables would direct the tools to another daemon or database.
unset OVN_NB_DAEMON OVN_SB_DAEMON OVN_NBCTL_OPTIONS OVN_SBCTL_OPTIONS
hash -r 2>/dev/null || :

echo '* You can now run the following offline commands directly:'
{{- if .OVS}}
echo '    ovs-appctl [...]'
echo
echo '    ovs-vsctl [...]'
echo '    ovsdb-client [...]'
{{- end}}
{{- if .Recorded}}
echo
echo '    ovs-vsctl-recorded [...]'
{{- end}}
{{- if .NB}}
echo
echo '    ovn-nbctl [...]'
echo '    ovsdb-client [...] $OVN_NB_DB'
{{- end}}
{{- if .SB}}
echo
echo '    ovn-sbctl [...]'
echo '    ovsdb-client [...] $OVN_SB_DB'
{{- end}}
{{- if .OVS}}
echo
echo '    ovs-ofctl [...] [bridge]'
{{- end}}
echo '* You can restore your previous environment with:'
echo '    deactivate'
