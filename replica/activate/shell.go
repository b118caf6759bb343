package activate

import (
	"os"
	"path/filepath"
)

// fishScript is the name of the script for fish.
const fishScript = "activate.fish"

// zshFolder is the folder of settings of an activated zsh while it starts.
const zshFolder = "zsh"

// Shell returns the arguments of an activated shell, and the variables to add to the
// caller's environment. An interactive shell sources activate after its own
// settings, which could change the variables; any other gets the variables alone.
func (r Replica) Shell(shell string, interactive bool) (argv, env []string) {
	if !interactive {
		return []string{shell}, r.variables()
	}
	switch filepath.Base(shell) {
	case "bash":
		return []string{shell, "--rcfile", filepath.Join(r.Bin, bashSettings), "-i"}, nil
	case "zsh":
		return []string{shell, "-i"}, []string{"_OVS_OFFLINE_ZDOTDIR=" + os.Getenv("ZDOTDIR"), "ZDOTDIR=" + filepath.Join(r.Bin, zshFolder)}
	case "fish":
		return []string{shell, "-i", "-C", "source " + quoteFish(filepath.Join(r.Bin, fishScript))}, nil
	}
	return []string{shell, "-i"}, append(r.variables(), "PS1="+r.prompt()+" $ ")
}

// bashSettings is the name of the file that an activated bash reads instead of
// ~/.bashrc.
const bashSettings = ".bashrc"

// variables returns the variables that activate sets.
func (r Replica) variables() []string {
	env := []string{"PATH=" + r.Bin + ":" + os.Getenv("PATH")}
	for name, value := range r.Environment() {
		env = append(env, name+"="+value)
	}
	return env
}
