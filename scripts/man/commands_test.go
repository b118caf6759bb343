package main

import (
	"os"
	"testing"

	"ovs-offline/cmd"
)

// TestCommandsOfTheDocumentation compares docs/commands.md with the program.
func TestCommandsOfTheDocumentation(t *testing.T) {
	const docs = "../../docs"
	got, err := os.ReadFile(docs + "/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := commandsPage(cmd.Root(), docs); string(got) != want {
		t.Errorf("docs/commands.md is not what go run ./scripts/man -commands writes:\ngot:\n%s\nwant:\n%s", got, want)
	}
}
