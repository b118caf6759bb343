package raft_test

import (
	"context"
	"fmt"
	"log"

	"ovs-offline/pkg/ovsdb/raft"
)

func ExampleRead() {
	member, err := raft.Read(context.Background(), nil, "testdata/small.db")
	if err != nil {
		log.Fatal(err)
	}
	servers, _ := member.ServersAt(member.Last())
	for _, address := range servers {
		fmt.Println(member.Name, address)
	}
	fmt.Println("term", member.CurrentTerm, "committed", member.Committed)
	// Output:
	// Small unix:/run/small.raft
	// term 0 committed 1
}
