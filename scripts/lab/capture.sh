# shellcheck shell=bash
# Writes an sos report of the live node, with the commands, names and paths of sos
# 4.12, and without data of the machine on which the lab runs.

# sos_name COMMAND: sets REPLY to sos's file name for the output of a command. (A capture
# asks for hundreds of names: to print them would start a process for each.)
sos_name() {
    local name=$1
    name=${name//+([!A-Za-z0-9_.\/-])/_}
    name=${name//\//.}
    name=${name##+([ ._-])}
    name=${name%%+([ ._-])}
    REPLY=${name:0:255}
}

# json_string TEXT: sets REPLY to it in quotes.
json_string() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    REPLY="\"$text\""
}

# collect PLUGIN COMMAND: runs a command as sos does (stdout and stderr in one file)
# and adds it to the manifest. COMMAND is one string, as in sos.
collect() {
    local plugin=$1 command=$2 name path rc=0 n=0
    local -a words enter=()
    [[ $plugin != networking ]] || enter=("${ENTER[@]}")
    read -ra words <<<"${command//netdev@ovs-netdev/system@ovs-system}"
    if [[ $command == 'ip netns exec '* ]]; then
        # The lab's namespaces have no names.
        enter=(nsenter --net="$(namespace_path "${words[3]}")")
        words=("${words[@]:4}")
    fi
    sos_name "$command"
    name=$REPLY
    [[ -d $TOP/sos_commands/$plugin ]] || mkdir -p "$TOP/sos_commands/$plugin"
    path=sos_commands/$plugin/$name
    while [[ -e $TOP/$path ]]; do
        n=$((n + 1))
        path=sos_commands/$plugin/$name.$n
    done
    timeout $((20 * LAB_PATIENCE)) "${enter[@]}" "${words[@]}" </dev/null >"$TOP/$path" 2>&1 || rc=$?
    # Messages of tools name sockets, which have other paths on a real node.
    if ((rc)); then
        sed -i -e "s,$LAB/ovs,/var/run/openvswitch,g" -e "s,$LAB/ovn,/var/run/ovn,g" "$TOP/$path"
    fi
    disguise "$command" "$TOP/$path"
    manifest_command "$plugin" "$command" "$path" "$rc"
}

# Where the lab's node differs from a real one, outputs are changed to those of a real
# node. The connection of two dummies and the number that the kernel gives a device
# are options of an interface in the lab only. The ports and the datapath of DPDK are
# dummies in the lab (TOPO_DATAPATH; TOPO_DISGUISE: "INTERFACE TYPE OPTION=VALUE
# ...", with the type "-" for a device that no longer exists).
disguise() {
    local command=$1 file=$2
    case $command in
    *' list interface' | 'ovs-vsctl -t 5 show')
        printf '%s\n' "${TOPO_DISGUISE[@]}" | awk "$DISGUISE_AWK" - "$file" >"$file.new"
        mv "$file.new" "$file"
        ;;
    *' list Open_vSwitch')
        # In a set, ovn-controller reaches the southbound database at its socket.
        [[ -z $TOPO_REMOTE ]] || sed -i "s,unix:$CENTRAL/ovnsb_db.sock,$TOPO_REMOTE," "$file"
        ;;
    'ovs-appctl ovs/route/show')
        [[ ! -e $LAB/local-routes ]] || cat "$LAB/local-routes" >>"$file"
        ;;
    'ovs-appctl dpctl/show '*)
        sed -i -e 's/(\(.*\): ifindex=[0-9]*)$/(\1)/' -e 's/ (system)$//' -e 's/(dummy-internal)$/(internal)/' "$file"
        ;;
    esac
    [[ $TOPO_DATAPATH != netdev ]] ||
        sed -i -e 's/system@ovs-system/netdev@ovs-netdev/' -e 's/ovs-system/ovs-netdev/' \
            -e 's/^\( *datapath_type *: \)system$/\1netdev/' -e 's/(internal)$/(tap)/' \
            -e 's/^\(dpdk_initialized *: \)false$/\1true/' -e "s/^\(dpdk_version *: \)none$/\1\"$DPDK_VERSION\"/" "$file"
}

DPDK_VERSION='DPDK 22.11.1'

# shellcheck disable=SC2016 # awk's dollars
DISGUISE_AWK='
    function quoted(text) {
        return text ~ /^[A-Za-z_][A-Za-z0-9_.-]*$/ && text !~ /^(true|false)$/ ? text : "\"" text "\""
    }
    function options(    i, text, key) {
        for (i = 3; i in word; i++) {
            key = word[i]
            sub(/=.*/, "", key)
            text = text (i > 3 ? ", " : "") quoted(key) "=" quoted(substr(word[i], length(key) + 2))
        }
        return "{" text "}"
    }
    function look_up(name) {
        gsub(/"/, "", name)
        delete word
        if (name in is) split(is[name], word, " ")
    }
    function gone() { return 2 in word && word[2] == "-" }
    function has_gone(text) {
        if (gone()) sub(/ \([^()]*\)"$/, " (No such device)\"", text)
        return text
    }
    # `list interface`: one record per paragraph, columns in alphabetical order
    function end_record(    i) {
        for (i = 1; i <= lines; i++) if (line[i] ~ /^name /) look_up(substr(line[i], 23))
        for (i = 1; i <= lines; i++) {
            sub(/{(p?stream|ifindex|tx_pcap)=.*}$/, "{}", line[i])
            if (2 in word) {
                if (line[i] ~ /^options /) line[i] = substr(line[i], 1, 22) options()
                if (line[i] ~ /^type /) line[i] = substr(line[i], 1, 22) (gone() ? "\"\"" : quoted(word[2]))
                if (line[i] ~ /^error /) line[i] = has_gone(line[i])
            }
            print line[i]
        }
        lines = 0
    }
    NR == FNR { if (NF) is[$1] = $0; next }
    /^[a-z0-9_]+ *: / || /^$/ { line[++lines] = $0; if (!NF) end_record(); next }
    # `show`
    $1 == "Port" || $1 == "Interface" || $1 == "Bridge" { delete word }
    /^ *options: {(p?stream|ifindex|tx_pcap)=/ { next }
    /^                (type|options): / && 2 in word { next }
    { print has_gone($0) }
    $1 == "Interface" {
        look_up($2)
        if (2 in word && !gone()) print "                type: " quoted(word[2])
        if (3 in word) print "                options: " options()
    }
    END { end_record() }'

# The same for the database. It is compacted, because its log would still hold the
# earlier values.
disguise_database() {
    local db=$1 row name type option error json separator
    local -a words operations=()
    for name in $(ovs-vsctl --bare --columns=name,options list Interface | paste -s -d ' ' |
        grep -oE '[^ ]+ (p?stream=p?unix:|ifindex=|tx_pcap=)' | cut -d ' ' -f 1); do
        operations+=("$(printf '{"op": "update", "table": "Interface", "where": [["name", "==", "%s"]], "row": {"options": ["map", []]}}' "$name")")
    done
    for row in "${TOPO_DISGUISE[@]}"; do
        read -ra words <<<"$row"
        json='' separator=''
        for option in "${words[@]:2}"; do
            json+=$separator$(printf '["%s", "%s"]' "${option%%=*}" "${option#*=}")
            separator=', '
        done
        type=${words[1]#-}
        error=''
        if [[ -z $type ]]; then
            error=$(printf ', "error": "could not open network device %s (No such device)"' "${words[0]}")
        fi
        operations+=("$(printf '{"op": "update", "table": "Interface", "where": [["name", "==", "%s"]], "row": {"type": "%s", "options": ["map", [%s]]%s}}' \
            "${words[0]}" "$type" "$json" "$error")")
    done
    if [[ $TOPO_DATAPATH != system ]]; then
        operations+=("$(printf '{"op": "update", "table": "Bridge", "where": [], "row": {"datapath_type": "%s"}}' "$TOPO_DATAPATH")")
        operations+=("$(printf '{"op": "update", "table": "Open_vSwitch", "where": [], "row": {"dpdk_initialized": true, "dpdk_version": "%s"}}' "$DPDK_VERSION")")
    fi
    if [[ -n $TOPO_REMOTE ]]; then
        operations+=("$(printf '{"op": "mutate", "table": "Open_vSwitch", "where": [], "mutations": [["external_ids", "delete", ["set", ["ovn-remote"]]], ["external_ids", "insert", ["map", [["ovn-remote", "%s"]]]]]}' "$TOPO_REMOTE")")
    fi
    ((${#operations[@]})) || return 0
    json='["Open_vSwitch"'
    for row in "${operations[@]}"; do
        json+=", $row"
    done
    ovsdb-tool transact "$db" "$json]" >/dev/null
    ovsdb-tool compact "$db" "$db.new"
    mv "$db.new" "$db"
    rm -f "$db".~lock~ "$db".new.~lock~ "${db%/*}"/.*.~lock~
}

manifest_command() {
    local entry name command path
    json_string "${3##*/}"
    name=$REPLY
    json_string "$2"
    command=$REPLY
    json_string "$3"
    path=$REPLY
    printf -v entry '{"cmd": %s, "exec": %s, "filepath": %s, "parameters": [], "return_code": %d, "tags": [], "truncated": false}' \
        "$name" "$command" "$path" "$4"
    MANIFEST_COMMANDS[$1]+="${MANIFEST_COMMANDS[$1]:+, }$entry"
}

manifest_file() {
    local entry name
    json_string "$2"
    name=$REPLY
    json_string "${3-$2}"
    printf -v entry '{"specification": %s, "files_copied": [%s], "tags": []}' "$name" "$REPLY"
    MANIFEST_FILES[$1]+="${MANIFEST_FILES[$1]:+, }$entry"
}

# dpif/show-dp-features prints the features from before the lab disabled some; on a
# real node the two are equal. So its lines get the current values. (The capabilities
# in the table Datapath, which ovs-vswitchd writes, are the current ones.)
features_in_force() {
    local bridge=$1 shown
    sos_name "ovs-appctl dpif/show-dp-features $bridge"
    shown=$TOP/sos_commands/openvswitch/$REPLY
    ovs-appctl dpif/set-dp-features "$bridge" |
        sed -n 's/^[a-z_0-9]* (\(.*\)) : \[run time\]:\([^,]*\),.*/\1: \2/p' |
        sed -e 's/: true$/: Yes/' -e 's/: false$/: No/' |
        awk -F ': ' 'NR == FNR { now[$1] = $2; next }
            $1 in now { print $1 ": " now[$1]; next } { print }' - "$shown" >"$shown.new"
    mv "$shown.new" "$shown"
}

collect_bridge() {
    local bridge=$1 version what
    collect openvswitch "ovs-appctl bridge/dump-flows --offload-stats $bridge"
    collect openvswitch "ovs-appctl dpif/show-dp-features $bridge"
    # (For a fake bridge, the file holds an error message.)
    if [[ $(ovs-vsctl br-to-vlan "$bridge") == 0 ]]; then
        features_in_force "$bridge"
    fi
    for what in fdb/show fdb/stats-show mdb/show; do
        collect openvswitch "ovs-appctl $what $bridge"
    done
    for what in dump-flows dump-groups dump-ports dump-ports-desc queue-get-config \
        queue-stats show; do
        collect openvswitch "ovs-ofctl $what $bridge"
    done
    collect openvswitch "ovs-ofctl -t 5 --version"
    while read -r version; do
        for what in show dump-groups dump-group-stats dump-flows dump-tlv-map \
            dump-ports-desc dump-meters meter-stats; do
            collect openvswitch "ovs-ofctl -O $version $what $bridge"
        done
    done < <(allowed_versions "$bridge")
}

collect_openvswitch() {
    local what bridge datapath bond
    for what in bfd/show bond/list bond/show cfm/show coverage/show dpctl/dump-dps lacp/show \
        memory/show ofproto/list ofproto/list-tunnels ovs/route/show tnl/arp/show \
        tnl/neigh/show "tnl/ports/show -v" upcall/show; do
        collect openvswitch "ovs-appctl $what"
    done
    for what in list-br show "list Open_vSwitch" "list bridge" "list controller" \
        "list datapath" "list flow_sample_collector_set" "list interface" "list ipfix" \
        "list manager" "list mirror" "list netflow" "list port" "list qos" "list queue" \
        "list sflow"; do
        collect openvswitch "ovs-vsctl -t 5 $what"
    done
    while read -r datapath; do
        collect openvswitch "ovs-appctl dpctl/show -s $datapath"
        collect openvswitch "ovs-appctl dpctl/dump-flows -m $datapath"
        collect openvswitch "ovs-appctl dpctl/dump-conntrack -m $datapath"
        collect openvswitch "ovs-appctl dpctl/ct-stats-show -m $datapath"
    done < <(ovs-appctl dpctl/dump-dps | sed "s/.*/$TOPO_DATAPATH@ovs-$TOPO_DATAPATH/")
    while read -r bond; do
        collect openvswitch "ovs-appctl bond/show $bond"
    done < <(ovs-appctl bond/list | tail -n +2 | cut -f 1)
    while read -r bridge; do
        collect_bridge "$bridge"
    done < <(ovs-vsctl list-br)
}

# Devices, addresses and routes are the kernel's; of dummies it knows none.
collect_networking() {
    local what
    for what in '-s -d link' '-d address' 'route show table all' '-6 route show table all' 'neigh show nud noarp'; do
        collect networking "ip $what"
    done
}

collect_namespaces() {
    local name what
    for name in $(namespace_names); do
        [[ $name != "$OWN" ]] || continue
        for what in 'ip -d address show' 'ip route show table all' 'ip rule list' 'ip -4 rule list' \
            'ip -6 rule list' 'ip -s -s neigh show' iptables-save ip6tables-save 'sysctl -a'; do
            collect networking "ip netns exec $name $what"
        done
        collect conntrack "ip netns exec $name conntrack -L -o extended"
    done
}

collect_ovn_host() {
    collect ovn_host "ovs-ofctl -O OpenFlow13 dump-flows br-int"
    collect ovn_host "ovs-vsctl list-br"
}

# The database file of a Debian node.
copy_databases() {
    local db
    mkdir -p "$TOP/var/lib/openvswitch" "$TOP/etc/openvswitch"
    cp "$LAB/ovs/conf.db" "$TOP/var/lib/openvswitch/conf.db"
    disguise_database "$TOP/var/lib/openvswitch/conf.db"
    ln -s ../../var/lib/openvswitch/conf.db "$TOP/etc/openvswitch/conf.db"
    manifest_file openvswitch /etc/openvswitch/conf.db var/lib/openvswitch/conf.db
    manifest_file openvswitch /var/lib/openvswitch/conf.db var/lib/openvswitch/conf.db
    [[ $TOPO_OVN == yes ]] || return 0
    mkdir -p "$TOP/var/lib/ovn/etc"
    for db in nb sb; do
        cp "${DATABASES:-$CENTRAL}/ovn${db}_db.db" "$TOP/var/lib/ovn/etc/ovn${db}_db.db"
        manifest_file ovn_central "/var/lib/ovn/etc/ovn${db}_db.db" "var/lib/ovn/etc/ovn${db}_db.db"
    done
}

# Only the packages of OVS and OVN: the others are those of this machine.
collect_packages() {
    local path=sos_commands/dpkg/dpkg_-l version
    version=$(ovs_version)
    mkdir -p "$TOP/sos_commands/dpkg"
    {
        printf '%s\n' \
            'Desired=Unknown/Install/Remove/Purge/Hold' \
            '| Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend' \
            '|/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)' \
            '||/ Name Version Architecture Description' \
            '+++-====-=======-============-===========' 
        dpkg -l 2>/dev/null | grep -E '^ii +(openvswitch|ovn)-' ||
            printf 'ii  openvswitch-switch  %s-1  amd64  Open vSwitch switch implementations\n' "$version"
    } >"$TOP/$path"
    manifest_command dpkg "dpkg -l" "$path" 0
}

write_manifest() {
    local plugin plugins='' version=$1
    for plugin in openvswitch ovn_host ovn_central dpkg networking conntrack; do
        [[ -n ${MANIFEST_COMMANDS[$plugin]-}${MANIFEST_FILES[$plugin]-} ]] || continue
        json_string "$plugin"
        plugins+=${plugins:+, }$(printf '%s: {"commands": [%s], "files": [%s], "strings": {}, "containers": {}}' \
            "$REPLY" "${MANIFEST_COMMANDS[$plugin]-}" "${MANIFEST_FILES[$plugin]-}")
    done
    mkdir -p "$TOP/sos_reports"
    json_string "$version"
    printf '{"version": %s, "cmdline": "sos report --batch", "start_time": "%s", "end_time": "%s", "run_time": "", "compression": "xz", "policy": "Debian", "components": {"report": {"sysroot": "/", "verbosity": 0, "enabled_plugins": ["dpkg", "openvswitch", "ovn_central", "ovn_host"], "plugins": {%s}}}}\n' \
        "$REPLY" "$STARTED" "$(date '+%F %T')" "$plugins" \
        >"$TOP/sos_reports/manifest.json"
}

random_letters() {
    local letters=abcdefghijklmnopqrstuvwxyz word='' n
    for ((n = 0; n < $1; n++)); do
        word+=${letters:RANDOM % 26:1}
    done
    printf '%s' "$word"
}

# In archives of sos, version.txt is first, and all files belong to root.
write_archive() {
    local scratch=$1 name=$2 out=$3
    (
        cd "$scratch" || exit
        {
            printf '%s\n' "$name/version.txt"
            find "$name" -mindepth 1 ! -path "$name/version.txt" | sort
        } >members
        tar --create --format=pax --pax-option=delete=atime,delete=ctime --no-recursion \
            --owner=root:0 --group=root:0 --files-from=members | xz -2 >"$out/$name.tar.xz"
        sha256sum "$out/$name.tar.xz" | cut -d ' ' -f 1 >"$out/$name.tar.xz.sha256"
    )
}

capture() {
    local out=$1 scratch name
    declare -gA MANIFEST_COMMANDS=() MANIFEST_FILES=()
    STARTED=$(date '+%F %T')
    name=sosreport-$TOPO_HOST-$(date +%F)-$(random_letters 7)
    scratch=$(mktemp -d "$LAB/capture.XXXXXXXX")
    TOP=$scratch/$name
    mkdir "$TOP"
    printf 'sosreport: 4.12.0\n' >"$TOP/version.txt"
    collect_openvswitch
    [[ $TOPO_OVN != yes ]] || collect_ovn_host
    [[ $KERNEL != yes ]] || collect_networking
    [[ ${SET_NAMESPACES-no} == no ]] || collect_namespaces
    collect_packages
    copy_databases
    write_manifest 4.12.0
    write_archive "$scratch" "$name" "$out"
    rm -rf "$scratch"
}
