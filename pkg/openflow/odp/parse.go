package odp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
)

// maxDepth bounds nested lists of actions; ovs-vswitchd nests up to 32 (lib/odp-util.c).
const maxDepth = 64

// Parse reads a list of datapath actions. What it doesn't know becomes an Unknown.
func Parse(text string) []Action { return parse(text, 0) }

func parse(text string, depth int) []Action {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if depth == maxDepth {
		return []Action{Unknown{phrase.Shorten(text, 80)}}
	}
	var list []Action
	for token := range openflow.Split(text) {
		token = strings.TrimSpace(token)
		action, err := parseAction(token, depth)
		if err != nil {
			action = Unknown{token}
		}
		list = append(list, action)
	}
	return list
}

// parseAction reads one datapath action.
func parseAction(token string, depth int) (Action, error) {
	name, args, nested := splitCall(token)
	if !nested {
		return parseWord(token), nil
	}
	switch name {
	case "set":
		return parseSet(args)
	case "ct":
		return parseTrack(args)
	case "recirc":
		id, err := strconv.ParseUint(args, 0, 32)
		return Recirculate{uint32(id)}, err
	case "hash":
		return Hash{args}, nil
	case "meter":
		return Meter{args}, nil
	case "trunc":
		size, err := strconv.Atoi(args)
		return Truncate{size}, err
	case "clone":
		return Clone{parse(args, depth+1)}, nil
	case "sample":
		return parseSample(args, depth)
	case "check_pkt_len":
		return parseCheckLength(args, depth)
	case "userspace":
		return parseUserspace(args), nil
	case "tnl_push":
		return parsePush(args)
	case "tnl_pop":
		return PopTunnel{unquote(args)}, nil
	case "dec_ttl":
		list := arguments(args)
		return DecrementTTL{parse(find(list, "le_1"), depth+1)}, nil
	case "psample":
		return Sample{Percent: "psample"}, nil
	}
	return parseChange(name, args)
}

// splitCall splits NAME(ARGS).
func splitCall(token string) (name, args string, ok bool) {
	name, rest, found := strings.Cut(token, "(")
	if !found || strings.HasPrefix(token, `"`) || !strings.HasSuffix(rest, ")") {
		return "", "", false
	}
	return name, rest[:len(rest)-1], true
}

// parseWord reads an action without arguments.
func parseWord(token string) Action {
	switch token {
	case "drop":
		return Drop{}
	case "ct_clear":
		return Untrack{}
	case "ct":
		return Track{}
	case "dec_ttl":
		return DecrementTTL{}
	case "pop_vlan", "pop_eth":
		change, err := parseChange(token, "")
		if err != nil {
			return Unknown{token}
		}
		return change
	}
	if strings.ContainsAny(token, " (){}=") && !strings.HasPrefix(token, `"`) {
		return Unknown{token}
	}
	return Output{unquote(token)}
}

// unquote returns the name of a port, which is quoted if it has unusual characters.
func unquote(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// arguments splits KEY=VALUE,WORD,KEY(VALUE).
func arguments(text string) []Argument {
	if text == "" {
		return nil
	}
	var list []Argument
	for token := range openflow.Split(text) {
		key, value, valued := strings.Cut(token, "=")
		if at := strings.IndexByte(token, '('); at >= 0 && (!valued || at < len(key)) && strings.HasSuffix(token, ")") {
			key, value = token[:at], token[at+1:len(token)-1]
		}
		list = append(list, Argument{strings.TrimSpace(key), value})
	}
	return list
}

// find returns the value of an argument, "" if there is no such argument.
func find(list []Argument, key string) string {
	for _, argument := range list {
		if argument.Key == key {
			return argument.Value
		}
	}
	return ""
}

// has reports whether there is an argument with a key.
func has(list []Argument, key string) bool {
	return slices.ContainsFunc(list, func(argument Argument) bool { return argument.Key == key })
}

func parseSample(args string, depth int) (Action, error) {
	list := arguments(args)
	if !has(list, "actions") {
		return nil, fmt.Errorf("sample(%s) has no actions", args)
	}
	return Sample{find(list, "sample"), parse(find(list, "actions"), depth+1)}, nil
}

func parseCheckLength(args string, depth int) (Action, error) {
	list := arguments(args)
	size, err := strconv.Atoi(find(list, "size"))
	if err != nil || !has(list, "gt") || !has(list, "le") {
		return nil, fmt.Errorf("check_pkt_len(%s) is incomplete", args)
	}
	return CheckLength{Size: size, Greater: parse(find(list, "gt"), depth+1), AtMost: parse(find(list, "le"), depth+1),
		GreaterText: find(list, "gt"), Text: find(list, "le")}, nil
}

func parseUserspace(args string) Action {
	list := arguments(args)
	if has(list, "slow_path") {
		return Userspace{SlowPath: true}
	}
	if !has(list, "controller") {
		return Userspace{}
	}
	controller := arguments(find(list, "controller"))
	cookie, _ := strconv.ParseUint(find(controller, "rule_cookie"), 0, 64)
	reason, _ := strconv.Atoi(find(controller, "reason"))
	return Userspace{Controller: true, Continuation: find(controller, "continuation") == "1", Cookie: cookie, Reason: reason}
}
