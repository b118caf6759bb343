# Process 1 of the tools' container: runs programs that ovs-offline requests
# through a named pipe. An engine's own exec takes ten times as long, and has
# lost output.
#
# "run NAME": NAME is a folder with the words (settings of the environment, "--",
# and a program with its arguments, each ended by a NUL) and with pipes for the
# program's input, output and errors. Its exit code is written to "exit".
# "kill NAME" ends the program of that request.
set -m # each program leads a process group, and can be killed with its children
umask 077
folder=$1
declare -A groups

run() {
    local words program code=failed
    mapfile -d '' -t words <"$folder/$1/words"
    while [[ ${words[0]} != -- ]]; do
        if [[ ${words[0]} == *= ]]; then
            unset "${words[0]%=}"
        else
            export "${words[0]}"
        fi
        words=("${words[@]:1}")
    done
    words=("${words[@]:1}")
    {
        program=${words[0]}
        if [[ $program != */* ]] && hash -- "$program" 2>/dev/null; then
            program=${BASH_CMDS[$program]} # a path: never something of the shell's own
        fi
        if [[ $program == */* && -x $program ]]; then
            "$program" "${words[@]:1}"
            code=$?
        else
            code=missing
        fi
    } <"$folder/$1/in" >"$folder/$1/out" 2>"$folder/$1/err"
    echo "$code" 1<>"$folder/$1/exit"
}

exec {requests}<>"$folder/requests"
while read -r -u "$requests" verb name; do
    case $verb in
    run)
        run "$name" {requests}<&- &
        groups[$name]=$!
        ;;
    kill)
        if [[ -n ${groups[$name]-} ]]; then
            kill -KILL -- "-${groups[$name]}"
        fi
        ;;
    esac
done
