[ -r ~/.bashrc ] && . ~/.bashrc
. {{quote .Activate}}
