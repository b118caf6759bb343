ZDOTDIR=${_OVS_OFFLINE_ZDOTDIR:-$HOME}; unset _OVS_OFFLINE_ZDOTDIR
for _ovs_offline_name in .zshenv .zshrc; do [ -r $ZDOTDIR/$_ovs_offline_name ] && . $ZDOTDIR/$_ovs_offline_name; done
[ $ZDOTDIR = $HOME ] && unset ZDOTDIR
unset _ovs_offline_name
. {{quote .Activate}}
