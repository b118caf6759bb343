package tickets

import "strings"

// prompts are the forms of what shells and systems print before a command.
func prompts() []Form {
	fixed := func(prompt string) func(*Node) string { return func(*Node) string { return prompt } }
	return ofKind("prompt",
		byPrompt("red hat", "[root@n1 ~]# ", rootPrompt),
		byPrompt("debian", "root@n1:~# ", func(n *Node) string { return "root@" + n.Name + ":~# " }),
		byPrompt("user", "me@n1:/var/log$ sudo ", func(n *Node) string { return "me@" + n.Name + ":/var/log$ sudo " }),
		byPrompt("suse", "n1:~ # ", func(n *Node) string { return n.Name + ":~ # " }),
		byPrompt("fish", "root@n1 ~# ", func(n *Node) string { return "root@" + n.Name + " ~# " }),
		byPrompt("fish of a user", "me@n1 ~> sudo ", func(n *Node) string { return "me@" + n.Name + " ~> sudo " }),
		byPrompt("zsh", "n1% sudo ", func(n *Node) string { return n.Name + "% sudo " }),
		byPrompt("oh my zsh", "➜  ~ sudo ", fixed("➜  ~ sudo ")),
		byPrompt("starship", "❯ sudo ", fixed("❯ sudo ")),
		byPrompt("virtualenv", "(undercloud) [stack@n1 ~]$ sudo ", func(n *Node) string { return "(undercloud) [stack@" + n.Name + " ~]$ sudo " }),
		byPrompt("container", "sh-5.1# ", fixed("sh-5.1# ")),
		byPrompt("busybox", "/ # ", fixed("/ # ")),
		byPrompt("powershell", `PS C:\> `, fixed(`PS C:\> `)),
		byPrompt("cmd", `C:\openvswitch>`, fixed(`C:\openvswitch>`)),
		byPrompt("mininet", "mininet> sh ", fixed("mininet> sh ")),
		byPrompt("root alone", "# ", fixed("# ")),
		byPrompt("dollar alone", "$ sudo ", fixed("$ sudo ")),
		byPrompt("none", "the command alone", fixed("")),
		byPrompt("ansi colours", "a prompt in colours, with the title of the window", func(n *Node) string {
			return "\x1b]0;root@" + n.Name + ":~\x07\x1b[01;31mroot@" + n.Name + "\x1b[00m:\x1b[01;34m~\x1b[00m# "
		}),
		Form{Name: "xtrace", Shows: "+ ovs-ofctl ..., as sh -x prints it", Write: func(n *Node) string { return typed("+ ", n.Outputs) }},
		Form{Name: "time before", Shows: "12:00:01 root@n1:~# ", Write: func(n *Node) string { return typed("12:00:01 root@"+n.Name+":~# ", n.Outputs) }},
		Form{Name: "two lines", Shows: "a prompt of two lines", Write: func(n *Node) string {
			return typed("┌──(root㉿"+n.Name+")-[~]\n└─# ", n.Outputs)
		}},
		Form{Name: "prompt behind", Shows: "an empty prompt behind each output", Write: func(n *Node) string {
			var b strings.Builder
			for _, o := range n.Outputs {
				b.WriteString(plain(n, []Output{o}) + rootPrompt(n) + "\n" + rootPrompt(n) + "\n")
			}
			return b.String()
		}},
	)
}

// wrapped are the forms of command lines that have something else run the command.
func wrapped() []Form {
	before := func(name, words string) Form {
		return byCommand(name, words+"COMMAND", func(_ *Node, command string) string { return words + command })
	}
	return ofKind("command",
		before("sudo", "sudo "),
		before("sudo of a user", "sudo -u root "),
		before("kubectl exec", "kubectl exec -n openshift-ovn-kubernetes ovnkube-node-x7k2p -c ovn-controller -- "),
		before("oc exec", "oc -n openshift-ovn-kubernetes exec -it ovnkube-node-x7k2p -- "),
		before("oc rsh", "oc rsh -n openshift-ovn-kubernetes ovnkube-node-x7k2p "),
		before("docker exec", "docker exec -it openvswitch_vswitchd "),
		before("podman exec", "podman exec ovn_controller "),
		before("crictl exec", "crictl exec $(crictl ps --name ovn-controller -q | head -1) "),
		before("crictl with awk", "crictl exec -it $(crictl ps | grep ovs | awk '{print $1}') "),
		before("juju ssh", "juju ssh nova-compute/0 sudo "),
		before("ssh", "ssh root@10.0.0.5 "),
		byCommand("ssh quoted", `ssh root@10.0.0.5 "COMMAND"`, func(_ *Node, command string) string { return `ssh root@10.0.0.5 "` + command + `"` }),
		byCommand("sh -c", "sudo sh -c 'COMMAND'", func(_ *Node, command string) string { return "sudo sh -c '" + command + "'" }),
		before("nsenter", "nsenter -t 1 -m -u -n -i -- "),
		before("chroot", "chroot /host "),
		before("time", "time "),
		before("timeout", "timeout 10 "),
		before("watch", "watch -n 1 "),
		before("path", "/usr/bin/"),
		byCommand("tee", "COMMAND 2>&1 | tee FILE", func(_ *Node, command string) string { return command + " 2>&1 | tee /tmp/out.txt" }),
		byCommand("less", "COMMAND | less", func(_ *Node, command string) string { return command + " | less" }),
		byCommand("no errors", "COMMAND 2>/dev/null", func(_ *Node, command string) string { return command + " 2>/dev/null" }),
		byCommand("comment", "COMMAND  # a comment", func(_ *Node, command string) string { return command + "  # as root" }),
		byCommand("quoted bridge", `the last word in quotation marks`, func(_ *Node, command string) string {
			at := strings.LastIndexByte(command, ' ')
			return command[:at+1] + `"` + command[at+1:] + `"`
		}),
		Form{Name: "semicolons", Shows: "all commands on one line, with ;", Write: func(n *Node) string { return onOneLine(n, "; ") }},
		Form{Name: "and", Shows: "all commands on one line, with &&", Write: func(n *Node) string { return onOneLine(n, " && ") }},
	)
}

// onOneLine returns a text in which one line has all commands, and the outputs follow.
func onOneLine(n *Node, between string) string {
	var commands []string
	var b strings.Builder
	for _, o := range n.Outputs {
		commands = append(commands, o.Command)
		b.WriteString(ended(o.Text))
	}
	return rootPrompt(n) + strings.Join(commands, between) + "\n" + b.String()
}
