#!/usr/bin/env bash
# record.sh FOLDER: records a node with Services of session affinity on the kernel's datapath,
# as root on a machine whose Open vSwitch does not run: what was collected before any client
# (FOLDER/before) and after the first one (FOLDER/after), and in FOLDER/clients what happened
# to the connections of two clients, which are real sockets in namespaces.
set -euo pipefail
out=$1
modprobe openvswitch
modprobe geneve
ip link set lo up
D=$(mktemp -d)
export OVS_RUNDIR=$D OVS_LOGDIR=$D OVS_DBDIR=$D OVN_RUNDIR=$D OVN_NB_DB=unix:$D/c.sock OVN_SB_DB=unix:$D/c.sock
cd "$D"
daemon=(--detach --no-chdir --pidfile --log-file)

start() {
    ovsdb-tool create conf.db /usr/share/openvswitch/vswitch.ovsschema
    ovsdb-tool create nb.db /usr/share/ovn/ovn-nb.ovsschema
    ovsdb-tool create sb.db /usr/share/ovn/ovn-sb.ovsschema
    ovsdb-server "${daemon[@]}" --remote=punix:"$D"/db.sock conf.db
    ovsdb-server --detach --no-chdir --pidfile="$D"/central.pid --unixctl="$D"/central.ctl --remote=punix:"$D"/c.sock nb.db sb.db
    ovs-vsctl --no-wait init
    ovs-vswitchd "${daemon[@]}" unix:"$D"/db.sock
    ovn-northd "${daemon[@]}" --ovnnb-db="$OVN_NB_DB" --ovnsb-db="$OVN_SB_DB"
    ovs-vsctl set Open_vSwitch . external_ids:system-id=node external_ids:hostname=node external_ids:ovn-remote="$OVN_SB_DB" \
        external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip=127.0.0.1 -- add-br br-int -- set Bridge br-int fail_mode=secure
    ovn-controller "${daemon[@]}" unix:"$D"/db.sock
}

# port SWITCH NAME MAC IPV4 IPV6: a port whose other end is a namespace.
port() {
    ovn-nbctl lsp-add "$1" "$2" -- lsp-set-addresses "$2" "$3 $4 $5"
    ovs-vsctl add-port br-int "$2" -- set Interface "$2" type=internal mac="\"$3\"" external_ids:iface-id="$2"
    ip netns add "$2"
    ip link set "$2" netns "$2"
    ip -n "$2" link set lo up
    ip -n "$2" link set "$2" up
    ip -n "$2" addr add "$4/24" dev "$2"
    ip -n "$2" addr add "$5/64" dev "$2" nodad
    ip -n "$2" route add default via "${4%.*}.1"
    ip -n "$2" -6 route add default via "${5%::*}::1"
}

service() {
    ovn-nbctl lb-add "$@" -- ls-lb-add sw0 "$1" -- set Load_Balancer "$1" options:affinity_timeout=60
}

logical() {
    local n
    ovn-nbctl lr-add lr0 -- lrp-add lr0 rp0 00:00:00:00:ff:00 10.0.0.1/24 fd00::1/64 -- lrp-add lr0 rp1 00:00:00:00:ff:01 10.0.1.1/24 fd00:1::1/64
    for n in 0 1; do
        ovn-nbctl ls-add sw$n -- lsp-add sw$n sw$n-lr0 -- lsp-set-type sw$n-lr0 router -- lsp-set-addresses sw$n-lr0 router -- lsp-set-options sw$n-lr0 router-port=rp$n
    done
    port sw0 client 00:00:00:00:00:10 10.0.0.10 fd00::10
    port sw0 other 00:00:00:00:00:11 10.0.0.11 fd00::11
    port sw1 b1 00:00:00:00:01:11 10.0.1.11 fd00:1::11
    port sw1 b2 00:00:00:00:01:12 10.0.1.12 fd00:1::12
    service tcp 10.96.0.10:80 10.0.1.11:8080,10.0.1.12:8080 tcp
    service udp 10.96.0.10:53 10.0.1.11:8053,10.0.1.12:8053 udp
    service tcp6 '[fd00:96::10]:80' '[fd00:1::11]:8080,[fd00:1::12]:8080' tcp
    service udp6 '[fd00:96::10]:53' '[fd00:1::11]:8053,[fd00:1::12]:8053' udp
    service one 10.96.0.11:80 10.0.1.11:8080 tcp
    ovn-nbctl --timeout=60 --wait=hv sync
}

capture() {
    local to=$out/$1
    mkdir -p "$to"/{db/ovs,db/ovn_nb,db/ovn_sb,restore_flows,recorded/bridges/br-int}
    ovs-ofctl -O OpenFlow15 --no-names dump-flows br-int >"$to"/restore_flows/br-int.flows.dump
    ovs-ofctl -O OpenFlow15 dump-groups br-int >"$to"/restore_flows/br-int.groups.dump
    ovs-appctl dpctl/dump-conntrack -m >"$to"/recorded/dpctl.dump-conntrack
    ovs-appctl dpif/show >"$to"/recorded/dpif.show
    ovs-appctl dpif/show-dp-features br-int >"$to"/recorded/bridges/br-int/dpif.show-dp-features
    ovs-vsctl list Interface >"$to"/recorded/list.Interface
    cp conf.db "$to"/db/ovs/
    cp nb.db "$to"/db/ovn_nb/ovnnb_db.db
    cp sb.db "$to"/db/ovn_sb/ovnsb_db.db
}

start
logical
cat >server.py <<'END'
import select
import socket
import sys

sockets = []
for kind, port in ((socket.SOCK_STREAM, 8080), (socket.SOCK_DGRAM, 8053)):
    s = socket.socket(socket.AF_INET6, kind)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    if kind == socket.SOCK_STREAM:
        s.listen(50)
    sockets.append(s)
while True:
    for s in select.select(sockets, [], [])[0]:
        if s.type == socket.SOCK_STREAM:
            connection, _ = s.accept()
            connection.send(sys.argv[1].encode())
            connection.close()
        else:
            _, sender = s.recvfrom(100)
            s.sendto(sys.argv[1].encode(), sender)
END

cat >client.py <<'END'
import socket
import time


def bound(vip, kind, port):
    s = socket.socket(socket.AF_INET6 if ":" in vip else socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", port))
    return s


def tcp(vip, port):
    s = bound(vip, socket.SOCK_STREAM, port)
    s.settimeout(20)
    began = time.time()
    s.connect((vip, 80))
    took = time.time() - began
    print("tcp", vip, "from", port, "opens after %.2f s at" % took, s.recv(10).decode(), flush=True)
    s.close()


def udp(vip, port):
    s = bound(vip, socket.SOCK_DGRAM, port)
    s.settimeout(2)
    for datagram in range(1, 4):
        s.sendto(b"x", (vip, 53))
        try:
            end = "is answered by " + s.recv(10).decode()
        except TimeoutError:
            end = "is lost"
        print("udp", vip, "from", port, "datagram", datagram, end, flush=True)
    s.close()


for port in 41000, 41001:
    tcp("10.96.0.11", port)
    tcp("10.96.0.10", port + 10)
    tcp("fd00:96::10", port)
    udp("10.96.0.10", port)
    udp("fd00:96::10", port)
END

for backend in b1 b2; do
    ip netns exec $backend python3 "$D"/server.py $backend &
done
sleep 2 # the servers have no other sign of being ready
capture before
ip netns exec client python3 "$D"/client.py | tee "$out"/clients
capture after
ip netns exec other python3 "$D"/client.py >>"$out"/clients
uname -r >"$out"/versions
ovs-vswitchd --version | head -n 1 >>"$out"/versions
ovn-controller --version | head -n 1 >>"$out"/versions
