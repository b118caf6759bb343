# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# The set kernel with a larger underlay, for the sizes of packets in tunnels.

# shellcheck source=scripts/lab/sets/kernel.sh
. "$HERE/sets/kernel.sh"
SET_SUMMARY='for the kernel datapath: the same nodes over an underlay of 9000 bytes'
UNDERLAY_MTU=9000
