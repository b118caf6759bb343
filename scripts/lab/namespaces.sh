# shellcheck shell=bash
# Network namespaces of a set's nodes, whose devices are ports of the node's Open vSwitch.
#
# A namespace has no name in /run/netns: a process, the relay (test/oracle/sets/relay), is in
# it, and it ends with that process. The relay makes the devices as taps, and moves frames
# between them and the dummy interfaces of the same names. Each such interface records what
# enters the namespace, as other ports record what is sent to them, and what leaves it
# (options:rxq_pcap).

# prepare_namespaces: builds the program, unless LAB_RELAY names one. Only sets with namespaces
# need Go.
prepare_namespaces() {
    if [[ -n ${LAB_RELAY-} ]]; then
        cp "$LAB_RELAY" "$SET/relay"
    else
        (cd "$HERE/../.." && go build -o "$SET/relay" ./test/oracle/sets/relay)
    fi
}

# start_namespace NAME [--listen=PORT,...] DEVICE...: makes a namespace with devices.
start_namespace() {
    local name=$1 word
    local -a words=()
    shift
    for word; do
        [[ $word == --* ]] || word=$word=$SET/wires/$NODE-$word.sock
        words+=("$word")
    done
    keep_namespace "$name" "${words[@]}"
}

# keep_namespace NAME ARGS...: starts the relay of a new namespace.
keep_namespace() {
    local name=$1 dir=$LAB/namespaces/$1 socket
    shift
    mkdir -p "$dir"
    socket=$SET/relays/$NODE-${name:0:20}
    setsid unshare --net "$SET/relay" --pidfile="$dir/relay.pid" --control="$socket" "$@" \
        </dev/null >"$dir/relay.log" 2>&1 &
    wait_for "the namespace $name" 20 test -S "$socket" || die "$(<"$dir/relay.log")"
    in_namespace "$name" ip link set lo up
}

# join_devices NAME DEVICE...: joins devices that are already in a namespace with their ports.
join_devices() {
    local name=$1 dir=$LAB/namespaces/$1 path device socket
    local -a words=()
    shift
    path=$(namespace_path "$name")
    for device; do
        words+=("$device=$SET/wires/$NODE-$device.sock")
    done
    socket=$SET/relays/$NODE-${name:0:20}-2
    setsid nsenter --net="$path" "$SET/relay" --pidfile="$dir/joined.pid" --control="$socket" "${words[@]}" \
        </dev/null >"$dir/joined.log" 2>&1 &
    wait_for "the devices of $name" 20 test -S "$socket" || die "$(<"$dir/joined.log")"
}

# namespace_path NAME: prints the path of a namespace.
namespace_path() {
    local pid
    if [[ $KERNEL == yes && $1 == "$OWN" ]]; then
        printf '/run/netns/%s' "$NODE"
        return
    fi
    pid=$(daemon_pid "$LAB/namespaces/$1/relay.pid") || return 1
    printf '/proc/%s/ns/net' "$pid"
}

# in_namespace NAME COMMAND...
in_namespace() {
    local path
    path=$(namespace_path "$1") || die "namespace $1 does not exist any more"
    shift
    nsenter --net="$path" "$@"
}

# add_namespace_port BRIDGE DEVICE NAMESPACE WORDS...: adds the port of a namespace's device;
# WORDS go to `set Interface`.
add_namespace_port() {
    local bridge=$1 device=$2 namespace=$3
    shift 3
    ovs-vsctl -- add-port "$bridge" "$device" -- set Interface "$device" type=internal \
        options:stream="unix:$SET/wires/$NODE-$device.sock" \
        options:tx_pcap="$LAB/pcap/$device.pcap" options:rxq_pcap="$LAB/pcap/$device.out.pcap" "$@"
    list_namespace_port "$bridge" "$device" "$namespace"
}

list_namespace_port() {
    printf '%s %s %s namespace %s %s\n' "$1" "$2" "$(ofport "$2")" "$NODE:$2" "$3" >>"$LAB/ports"
}

# namespace_names: prints the namespaces of the node.
namespace_names() {
    local dir
    for dir in "$LAB"/namespaces/*/; do
        [[ ! -d $dir ]] || basename "$dir"
    done
}

# settle_namespaces: waits until the kernel has checked that no other host has an address of
# the node's namespaces.
settle_namespaces() { wait_for "the addresses of namespaces" 20 has_settled; }

has_settled() {
    local name
    for name in $(namespace_names); do
        [[ -z $(in_namespace "$name" ip -6 address show tentative) ]] || return 1
    done
}

# The name of the namespace that stands for a node's own. Its outputs are in a folder of their own.
OWN=own

# record_namespaces OUTDIR: writes what each namespace of the node has, under the names that a
# working directory has for it. It has more than an sos report.
record_namespaces() {
    local name
    for name in $(namespace_names); do
        if [[ $name == "$OWN" ]]; then
            record_namespace "$name" "$1/$OWN"
        else
            record_namespace "$name" "$1/namespaces/$name"
        fi
    done
}

record_namespace() {
    local name=$1 out=$2 file command
    mkdir -p "$out"
    while IFS=: read -r file command; do
        local -a words
        read -ra words <<<"$command"
        in_namespace "$name" "${words[@]}" >>"$out/$file" 2>/dev/null || die "$name: $command failed"
    done <<'COMMANDS'
ip.address:ip -d address
ip.route:ip route show table all
ip.rule:ip rule
ip.rule.6:ip -6 rule
ip.neigh:ip -s -s neigh show
iptables-save:iptables-save
ip6tables-save:ip6tables-save
nft.ruleset:nft list ruleset
ipset.save:ipset save
conntrack:conntrack -L -o extended
sysctl:sysctl net
COMMANDS
}

if [[ $KERNEL == yes ]]; then
    # shellcheck source=scripts/lab/kernelspaces.sh
    . "$HERE/kernelspaces.sh"
fi
