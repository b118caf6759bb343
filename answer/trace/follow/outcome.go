package follow

import "strings"

// Outcome is an end of a packet, and the state that it leaves if it takes that way.
type Outcome struct {
	Hop    *Hop
	Branch Branch
	State  *State
	Choice string // the choices on the way to it, "" for none
}

// Outcomes returns the ends of a hop's tree. Ends that exclude each other, in another bucket
// of a group, have states of their own; the others have the state after the packet.
func (h *Hop) Outcomes(after *State) []Outcome { return h.outcomes(after, "") }

func (h *Hop) outcomes(after *State, choice string) []Outcome {
	var list []Outcome
	for _, branch := range h.Branches {
		state, choice := after, choice
		if branch.Choice != "" {
			state, choice = branch.State, strings.TrimPrefix(choice+", "+branch.Choice, ", ")
		}
		if branch.Next != nil {
			list = append(list, branch.Next.outcomes(state, choice)...)
		} else {
			list = append(list, Outcome{h, branch, state, choice})
		}
	}
	return list
}
