# Written by ovs-offline. Source it from fish; "deactivate" undoes it.

# A replica that is already active, this one or another, is deactivated first.
if functions -q _ovs_offline_leave
    _ovs_offline_leave
end

for name in{{range .Saved}} {{.}}{{end}}
    if set -qx $name
        set -g _OVS_OFFLINE_HOW_$name exported
    else if set -q $name
        set -g _OVS_OFFLINE_HOW_$name plain
    else
        set -g _OVS_OFFLINE_HOW_$name unset
    end
    set -g _OVS_OFFLINE_OLD_$name $$name
end
# A Python environment, for example, has a function of the same name.
if functions -q deactivate
    functions -c deactivate _ovs_offline_old_deactivate
    functions -e deactivate
end

function _ovs_offline_leave
    for name in{{range .Saved}} {{.}}{{end}}
        set -l how _OVS_OFFLINE_HOW_$name
        set -l old _OVS_OFFLINE_OLD_$name
        set -e $name
        switch $$how
            case exported
                set -gx $name $$old
            case plain
                set -g $name $$old
        end
        set -e $how
        set -e $old
    end
    functions -e _ovs_offline_leave deactivate fish_prompt
    if functions -q _ovs_offline_old_prompt
        functions -c _ovs_offline_old_prompt fish_prompt
        functions -e _ovs_offline_old_prompt
    end
    if functions -q _ovs_offline_old_deactivate
        functions -c _ovs_offline_old_deactivate deactivate
        functions -e _ovs_offline_old_deactivate
    end
end

function deactivate
    _ovs_offline_leave
end

if functions -q fish_prompt
    functions -c fish_prompt _ovs_offline_old_prompt
end
function fish_prompt
    echo -n '{{.Prompt}} '
    if functions -q _ovs_offline_old_prompt
        _ovs_offline_old_prompt
    end
end

set -gx PATH {{fish .Bin}} $PATH
set -gx OVS_RUNDIR {{fish .OVSRunDir}}
set -gx OVN_RUNDIR {{fish .OVNRunDir}}
{{- if .NB}}
set -gx OVN_NB_DB {{fish .NB}}
{{- else}}
set -e OVN_NB_DB
{{- end}}
{{- if .SB}}
set -gx OVN_SB_DB {{fish .SB}}
{{- else}}
set -e OVN_SB_DB
{{- end}}
# These variables would direct the tools to another daemon or database.
set -e OVN_NB_DAEMON
set -e OVN_SB_DAEMON
set -e OVN_NBCTL_OPTIONS
set -e OVN_SBCTL_OPTIONS

echo '* The tools talk to the replica now; this restores your previous environment:'
echo '    deactivate'
