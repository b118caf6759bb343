package k8s

// The shell texts that are sent to a pod. They are constants; what varies (a
// bridge's name, a folder) comes as an argument. Nothing is written over there.
//
// Every text begins with prologue and takes a nonce, a number of seconds for
// commands that answer at once and one for those that may stream for long. Its
// function f runs a command and prints its output between two lines that carry
// the nonce:
//
//	NONCE {NAME
//	output
//	NONCE }cCODE tTEE CRC LENGTH
//
// CODE is the command's exit code, TEE that of tee, which may come first where
// it fails; CRC and LENGTH are what
// cksum made of the output over there. The last line is "NONCE .". On stderr
// stand the same lines, without figures. So whatever a connection loses shows.
//
// Descriptors 3 to 5: the pipe to cksum, the stream itself, and the figures.
// tee opens /dev/fd/3, a pipe of the shell's own: /dev/stdout may not be
// opened where the container runs as somebody else than who made it.
const prologue = `n=$1 t=$2 T=$3;shift 3;set -f;exec 4>&1
f(){ printf '%s {%s\n' "$n" "$1" >&4||exit;printf '%s {%s\n' "$n" "$1" >&2;shift
set -- $({ { { "$@" </dev/null 3>&- 4>&- 5>&-;echo c$? >&5;}|{ tee /dev/fd/3 >&4;echo t$? >&5;};} 3>&1|cksum;} 5>&1)
case $1$2 in t*c*)x=$1 y=$2;shift 2;set -- "$y" "$x" "$@";;esac
printf '\n%s }%s\n' "$n" "$*" >&4||exit;printf '\n%s }\n' "$n" >&2;r=${1#c};case $r in *[!0-9]*)r=1;;esac;return $r;}
z(){ printf '%s .\n' "$n" >&4;printf '%s .\n' "$n" >&2;exit 0;}
`

// ovsTools finds ovs-vswitchd by its pid file: ovs-appctl itself would look for
// the process, which is in another pid namespace where OVS runs on the host.
const ovsTools = `R=${OVS_RUNDIR:-/var/run/openvswitch};p=
read -r p 2>/dev/null <"$R/ovs-vswitchd.pid"
c=$R/ovs-vswitchd.$p.ctl;[ -S "$c" ]||c=ovs-vswitchd
A(){ ovs-appctl --timeout=$t -t "$c" "$@";}
V(){ ovs-vsctl --timeout=$t --db="unix:$R/db.sock" "$@";}
D(){ l=$(A dpctl/dump-dps)||return;for d in $l;do A "$@" "$d"||return;done;}
`

// nodeText tells what is not about one bridge, the OVS database, and the tables
// that it takes by name: what is ephemeral in them no backup has.
const nodeText = prologue + ovsTools + `f version A version
f bridges V -f json --columns=name list Bridge
f backup ovsdb-client --timeout=$T backup "unix:$R/db.sock" Open_vSwitch
for x;do f "list $x" V list $x;done
for x in bfd/show bond/show cfm/show lacp/show ovs/route/show tnl/arp/show ofproto/list-tunnels dpif/show;do f $x A $x;done
f tnl/ports/show A tnl/ports/show -v
f dpctl/show D dpctl/show -s
z`

// bridgesText takes bridges. Its frames are named by their places, from 1:
// "1 dump-flows OpenFlow15". Each dump is taken in the highest OpenFlow version
// that answers; flows in the next one as well, for what the best can't say.
const bridgesText = prologue + ovsTools + `g(){ m=$1 k=$2;for v in 15 14 13 12 11 10;do
f "$i $k OpenFlow$v" ovs-ofctl --timeout=$T -O OpenFlow$v $k "$b"||continue
m=$((m-1));[ $m = 0 ]&&return;done;}
i=0;for b;do i=$((i+1))
g 1 dump-tlv-map;g 1 dump-meters;g 1 dump-groups;g 2 dump-flows;g 1 show;g 1 meter-stats
for k in bridge/dump-flows dpif/show-dp-features fdb/show mdb/show rstp/show stp/show;do f "$i $k" A $k "$b";done
f "$i done" true;done
z`

// datapathText tells what the datapath holds, which may be much.
const datapathText = prologue + ovsTools + `t=$T
f dpctl/dump-flows D dpctl/dump-flows -m
f dpctl/dump-conntrack D dpctl/dump-conntrack -m
z`

// databaseText takes a database's name, the name of its socket, and the folders
// where that may be. A member that has lost its cluster would keep us waiting.
const databaseText = prologue + `d=$1 k=$2;shift 2
for s in ${OVN_RUNDIR:+"$OVN_RUNDIR"} "$@";do s=$s/$k;[ -S "$s" ]&&break;done
f version ovn-nbctl --version
case $(ovsdb-client --timeout=$t query "unix:$s" '["_Server",{"op":"select","table":"Database","where":[["name","==","'"$d"'"]],"columns":["connected"]}]' 2>/dev/null) in
*'"connected":false'*) f disconnected true;;
*) f backup ovsdb-client --timeout=$T --no-leader-only backup "unix:$s" "$d";;esac
z`
