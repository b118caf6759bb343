# shellcheck shell=bash
# Records the traces and dumps of the live node that a replica is compared with.

# numbered_ports: replaces the ports `@name@` of a topology with OpenFlow port
# numbers, which packets in dumps have.
numbered_ports() {
    local name number
    local -a edits=()
    while read -r name number; do
        edits+=(-e "s/@$name@/$number/g")
    done < <(ovs-vsctl --bare --columns=name,ofport list Interface | paste - - - | awk '{print $1, $2}')
    sed "${edits[@]}"
}

# traces_names: reports whether ofproto/trace can print the names of ports. That of
# Open vSwitch 2.15 only prints numbers.
traces_names() {
    local bridge
    bridge=$(ovs-vsctl --real list-br | sed -n 1p)
    [[ $(ovs-appctl ofproto/trace --names "$bridge" in_port=LOCAL 2>&1) != *'unknown option'* ]]
}

write_release() {
    local names=no
    ! traces_names || names=yes
    {
        printf 'ovs %s\n' "$(ovs_version)"
        [[ $TOPO_OVN != yes ]] || printf 'ovn %s\n' "$(ovn-nbctl --version | sed -n '1s/.* //p')"
        printf 'names %s\n' "$names"
    } >"$1/release"
}

write_traces() {
    local out=$1 bridge options flow n=0 bad=0 file
    local -a words names=()
    ! traces_names || names=(--names)
    while IFS='|' read -r bridge options flow; do
        n=$((n + 1))
        file=$(printf '%s/live/%03d' "$out" "$n")
        printf '# %s | %s | %s\n' "$bridge" "$options" "$flow" >"$file"
        read -ra words <<<"$options"
        ovs-appctl ofproto/trace "${names[@]}" "${words[@]}" "$bridge" "$flow" >>"$file" 2>&1 ||
            {
                say "trace $n: $(sed -n 2p "$file")"
                bad=1
            }
    done <"$out/packets"
    ((bad == 0)) || die "some packets could not be traced"
}

# write_logical: traces packets through the logical network, as ovn-trace of this
# release does it on the live database.
write_logical() {
    local out=$1 datapath flow n=0
    [[ $(type -t topo_logical_packets) == function ]] || return 0
    mkdir -p "$out/logical"
    topo_logical_packets >"$out/logical-packets"
    while IFS='|' read -r datapath flow; do
        n=$((n + 1))
        ovn-trace "$datapath" "$flow" >"$(printf '%s/logical/%03d' "$out" "$n")" 2>&1 ||
            die "ovn-trace $datapath '$flow' failed: $(tail -n 1 "$(printf '%s/logical/%03d' "$out" "$n")")"
    done <"$out/logical-packets"
}

write_truth() {
    local out=$1/truth bridge version what
    while read -r bridge; do
        version=$(best_version "$bridge")
        printf '%s %s\n' "$bridge" "$version" >>"$out/versions"
        ovs-ofctl -O "$version" dump-flows --no-stats "$bridge" >"$out/$bridge.flows"
        ovs-ofctl -O "$version" dump-groups "$bridge" >"$out/$bridge.groups"
        what=OpenFlow13
        [[ $version < OpenFlow13 ]] || what=$version
        ovs-ofctl -O "$what" dump-meters "$bridge" >"$out/$bridge.meters"
        ovs-ofctl -O "$version" dump-tlv-map "$bridge" >"$out/$bridge.tlv"
    done < <(ovs-vsctl --real list-br)
    ovs-appctl dpif/show >"$out/dpif-show"
}

# Outputs that sos does not collect but a live collection can, under the file names
# that sos would use.
write_extra() {
    local out=$1/extra bridge command version
    local -a commands=("ovs-appctl dpif/show" "ovs-vsctl list flow_table")
    while read -r bridge; do
        version=$(best_version "$bridge")
        commands+=(
            "ovs-appctl rstp/show $bridge"
            "ovs-appctl stp/show $bridge"
            "ovs-ofctl -O $version get-frags $bridge"
            "ovs-ofctl -O $version dump-table-features $bridge"
        )
        [[ $version < OpenFlow14 ]] || commands+=("ovs-ofctl -O $version dump-table-desc $bridge")
    done < <(ovs-vsctl --real list-br)
    for command in "${commands[@]}"; do
        # fails with a message on a bridge without spanning tree
        sos_name "$command"
        $command >"$out/$REPLY" 2>&1 || true
        disguise "$command" "$out/$REPLY"
    done
}

# Outputs that other versions of sos, must-gathers and users collect, and the rows of
# the databases. test/generate/sosgen makes other collections from them.
write_raw() {
    local out=$1/raw bridge
    local -a bridges
    mapfile -t bridges < <(ovs-vsctl --real list-br)
    mkdir -p "$out/save"
    ovsdb-client -f list dump >"$out/ovsdb-client_-f_list_dump"
    dump_database "$OVS_RUNDIR/db.sock" Open_vSwitch "$out"
    if [[ $TOPO_OVN == yes ]]; then
        dump_database "$LAB/ovn/ovnnb_db.sock" OVN_Northbound "$out"
        dump_database "$LAB/ovn/ovnsb_db.sock" OVN_Southbound "$out"
    fi
    TMPDIR=$out/save /usr/share/openvswitch/scripts/ovs-save save-flows "${bridges[@]}" >"$out/save/do_restore.sh"
    for bridge in "${bridges[@]}"; do
        printf '%s %s\n' "$bridge" "$(ovs-vsctl get Bridge "$bridge" protocols)"
    done >"$out/protocols"
}

# dump_database SOCKET NAME OUTDIR: writes its rows and a backup.
dump_database() {
    ovsdb-client --no-leader-only -f json dump "unix:$1" "$2" >"$3/$2.json"
    ovsdb-client --no-leader-only backup "unix:$1" "$2" >"$3/$2.backup"
}

oracle() {
    local out=$1
    mkdir -p "$out"/{live,truth,extra,raw}
    : >"$out/truth/versions"
    topo_packets | grep -v -e '^#' -e '^$' | numbered_ports >"$out/packets"
    if grep -n '@' "$out/packets" >&2; then
        die "a packet names an unknown port"
    fi
    write_release "$out"
    write_traces "$out"
    write_logical "$out"
    write_truth "$out"
    write_extra "$out"
    write_raw "$out"
}
