package recording

// Script is the commands that a text has somebody type, as in a ticket or a guide.
type Script struct {
	Commands []Typed // in their order
	Comments []int   // the lines of commands that are comments
}

// Typed is a command of a tool of Open vSwitch or OVN that somebody types in a text.
type Typed struct {
	Line  int      // its first line, from 1
	Text  string   // the command line as typed, without the prompt
	Host  string   // in the prompt, or where the command line has it run; "" for none
	Words []string // the tool and its arguments, as a shell passes them
	Input []string // the lines of its here-document, nil for none
	Needs string   // what of it only a shell can carry out, "" for nothing
}
