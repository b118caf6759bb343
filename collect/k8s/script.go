package k8s

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// The following shell texts run in a pod. They consist of constants and of the table of
// recorded commands; text from outside (a bridge's name) is an argument. They write no
// file in the pod.
//
// Every text begins with prologue and takes a nonce, a number of seconds for commands
// that answer at once, one for commands that may stream for long, and the nonces of
// earlier tries. Its function f runs a command and prints its output between two lines
// that carry the nonce:
//
//	NONCE {NAME
//	output
//	NONCE }cCODE tTEE CRC LENGTH
//
// CODE is the command's exit code, TEE the exit code of tee, which may come first where
// it fails; CRC and LENGTH are the result of cksum in the pod. The last line is
// "NONCE .". stderr has the same lines, without figures. This detects every loss of the
// connection.
//
// Descriptors 3 to 5: the pipe to cksum, the stream itself, and the figures.
// tee opens /dev/fd/3, a pipe of the shell's own: /dev/stdout may not be
// opened where the container runs as another user than its creator.
const prologue = `n=$1 t=$2 T=$3;` + killFormer + `shift 4;set -f;exec 4>&1
` + watch + `f(){ printf '%s {%s\n' "$n" "$1" >&4||exit;printf '%s {%s\n' "$n" "$1" >&2;shift
set -- $({ { { "$@" </dev/null 3>&- 4>&- 5>&-;echo c$? >&5;}|{ tee /dev/fd/3 >&4;echo t$? >&5;};} 3>&1|cksum;} 5>&1)
case $1$2 in t*c*)x=$1 y=$2;shift 2;set -- "$y" "$x" "$@";;esac
printf '\n%s }%s\n' "$n" "$*" >&4||exit;printf '\n%s }\n' "$n" >&2;r=${1#c};case $r in *[!0-9]*)r=1;;esac;return $r;}
z(){ printf '%s .\n' "$n" >&4;printf '%s .\n' "$n" >&2;exit 0;}
`

// killFormer kills the process groups of earlier tries, which it finds by their nonces:
// a container runtime that was killed never closes their standard input.
const killFormer = `for x in $4;do for p in /proc/[0-9]*;do
[ $p = /proc/$$ ]||while read -r l||[ "$l" ];do case $l in *$x*)kill -9 -${p#/proc/};;esac;l=;done <$p/cmdline
done;done 2>/dev/null
`

// watch makes sure that no process stays in the pod when the connection is lost: the
// container runtime keeps its end of the output open, so that a command which writes
// would wait for ever. Two processes kill the process group of the shell, which is
// that of this exec alone: the second one when standard input ends, the first one when
// no line came from there (see pulse) for 30 seconds. At its own end the shell ends
// what is left of its group. Nothing is watched where the shell shares its group with
// other processes; proc(5) describes the file.
const watch = `exec 6<&0 </dev/null;read -r x x x x g x 2>/dev/null </proc/$$/stat
[ "$g" = $$ ]&&{
{ exec >/dev/null 2>&1 4>&- 6<&-;trap i=0 USR1;i=0;while [ $i -lt 30 ];do sleep 1||exit;i=$((i+1));done;kill -9 0;} &
x=$!;{ exec >/dev/null 2>&1 4>&- 6<&-;while read -r l;do kill -USR1 $x;done;kill -9 0;} <&6 &
trap "trap '' TERM;kill 0" EXIT;}
exec 6<&-
`

// ovsTools finds ovs-vswitchd by its pid file: ovs-appctl itself would look for
// the process, which is in another pid namespace where OVS runs on the host.
// D runs a command for each datapath.
const ovsTools = `R=${OVS_RUNDIR:-/var/run/openvswitch};p=
read -r p 2>/dev/null <"$R/ovs-vswitchd.pid"
c=$R/ovs-vswitchd.$p.ctl;[ -S "$c" ]||c=ovs-vswitchd
A(){ ovs-appctl --timeout=$t -t "$c" "$@";}
V(){ ovs-vsctl --timeout=$t --db="unix:$R/db.sock" "$@";}
D(){ l=$(A dpctl/dump-dps)||return;for d in $l;do A "$@" "$d"||return;done;}
`

// kernelTools defines K, which runs a tool unless the kernel has not loaded a module: there is nothing to
// print then, and conntrack and ipset would make the kernel load it. Both modules have parameters, and so a
// folder in /sys/module also where they are part of the kernel.
const kernelTools = `K(){ [ -d /sys/module ]&&[ ! -d "/sys/module/$1" ]&&return;shift;"$@";}
`

// shellLine returns the shell text that runs a recorded command, in which A, V, D and
// K replace the tools that they add something to.
func shellLine(command recording.Command) string {
	tool, arguments, _ := strings.Cut(command.Line, " ")
	function := map[string]string{"ovs-appctl": "A", "ovs-vsctl": "V", "ovs-ofctl": "ovs-ofctl --timeout=$T",
		"conntrack": "K nf_conntrack conntrack", "ipset": "K ip_set ipset"}[tool]
	if command.Scope == recording.OfDatapath {
		function = "D"
	}
	return strings.TrimSpace(cmp.Or(function, tool) + " " + arguments)
}

// liveCommands returns the recorded commands of one scope that are run on a live node.
func liveCommands(bridge, large bool) []recording.Command {
	return slices.DeleteFunc(recording.Commands(), func(command recording.Command) bool {
		return command.NotLive || command.Target != "" || (command.Scope == recording.OfBridge) != bridge || command.Large != large
	})
}

// nodeText runs the commands that concern the whole node, and takes a backup of the
// OVS database. The listed tables have ephemeral columns, which no backup has.
func nodeText() string {
	return prologue + ovsTools + `f version A version
f bridges V -f json --columns=name list Bridge
f backup ovsdb-client --timeout=$T backup "unix:$R/db.sock" Open_vSwitch
` + framed(liveCommands(false, false)) + socketOf + daemonsText("ovsdb-server", "ovn-controller") + "z"
}

// socketOf defines S, which sets u to the control socket of a program: in the folders of OVN and of Open
// vSwitch, or in the one that follows the program's name.
const socketOf = `S(){ for d in ${2:-${OVN_RUNDIR:+"$OVN_RUNDIR"} /var/run/ovn "${R:-/var/run/openvswitch}"};do
p=;read -r p 2>/dev/null <"$d/$1.pid";u=$d/$1.$p.ctl;[ -S "$u" ]&&return;done;return 1;}
`

// daemonsText runs the commands that programs answer, if they run here. One that does not answer the
// first command is asked no more.
func daemonsText(targets ...string) string {
	var text strings.Builder
	for _, target := range targets {
		fmt.Fprintf(&text, "S %s&&%s", target, askText(target))
	}
	return text.String()
}

// askText asks the program at the socket u.
func askText(target string) string {
	var text strings.Builder
	separator := "{ "
	for _, command := range recording.OfHost() {
		if command.Target != target {
			continue
		}
		_, words, _ := strings.Cut(command.Line, "-t "+target+" ")
		fmt.Fprintf(&text, "%sf %s ovs-appctl --timeout=$t -t \"$u\" %s", separator, command.Name, words)
		if separator == "{ " {
			separator = "&&{\n"
		} else {
			separator = "\n"
		}
	}
	return text.String() + "\n};}\n"
}

// datapathText runs the commands that print what the datapath and netfilter hold, with the long timeout.
func datapathText() string {
	return prologue + ovsTools + kernelTools + "t=$T\n" + framed(liveCommands(false, true)) + logFilesText + "z"
}

// logFilesText prints the logs that the container has as files: the present ones, and the last of the
// rotated ones, of each the last 64 MiB.
const logFilesText = `set +f
for l in "${OVS_LOGDIR:-/var/log/openvswitch}" "${OVN_LOGDIR:-/var/log/ovn}";do for x in "$l"/*.log "$l"/*.log.1 "$l"/*.log.1.gz;do
case $x in *[!A-Za-z0-9._/-]*) continue;;esac
[ -f "$x" ]&&[ -s "$x" ]&&f "` + logFrame + `$x" tail -c 67108864 "$x";done;done
set -f
`

// logFrame begins the names of frames with logs, and the path of the log follows.
const logFrame = "log "

func framed(commands []recording.Command) string {
	var text strings.Builder
	for _, command := range commands {
		fmt.Fprintf(&text, "f %s %s\n", command.Name, shellLine(command))
	}
	return text.String()
}

// bridgesText runs the commands that concern one bridge, for each of its arguments.
// Its frames begin with the bridge's number, from 1: "1 dump-flows OpenFlow15". g
// runs a command in each OpenFlow version, the newest first, until as many as
// Command.Versions have answered.
func bridgesText() string {
	var versions []string
	for _, version := range openflow.Versions() {
		versions = append(versions, version.String())
	}
	var text strings.Builder
	for _, command := range liveCommands(true, false) {
		if command.Versions > 0 {
			fmt.Fprintf(&text, "g %d %s\n", command.Versions, command.Name)
		} else {
			fmt.Fprintf(&text, "f \"$i %s\" %s \"$b\"\n", command.Name, shellLine(command))
		}
	}
	return prologue + ovsTools + "g(){ m=$1 k=$2;for v in " + strings.Join(versions, " ") + `;do
f "$i $k $v" ovs-ofctl --timeout=$T -O $v $k "$b"||continue
m=$((m-1));[ $m = 0 ]&&return;done;}
i=0;for b;do i=$((i+1))
` + text.String() + `f "$i done" true;done
z`
}

// databaseText returns the text that backs up a database. Its arguments are the schema's name, the name of
// the socket, and the folders that may hold it. It skips a member that has lost its
// cluster, because such a member would not answer. It asks the server how it is doing, and with the OVN
// SB database also ovn-northd, which runs beside it.
func databaseText(kind workdir.Kind) string {
	text := prologue + `d=$1 k=$2;shift 2
for s in ${OVN_RUNDIR:+"$OVN_RUNDIR"} "$@";do s=$s/$k;[ -S "$s" ]&&break;done
f version ovn-nbctl --version
case $(ovsdb-client --timeout=$t query "unix:$s" '["_Server",{"op":"select","table":"Database","where":[["name","==","'"$d"'"]],"columns":["connected"]}]' 2>/dev/null) in
*'"connected":false'*) f disconnected true;;
*) f backup ovsdb-client --timeout=$T --no-leader-only backup "unix:$s" "$d";;esac
u=${s%.sock}.ctl;[ -S "$u" ]&&` + askText("ovn"+short(kind)+"_db")
	if kind == workdir.SB {
		text += socketOf + `S ovn-northd "${s%/*}"&&` + askText("ovn-northd")
	}
	return text + "z"
}
