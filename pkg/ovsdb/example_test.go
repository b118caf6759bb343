package ovsdb_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

func ExampleListing() {
	rows, err := ovsdb.Listing(strings.NewReader(`_uuid               : 5c84487c-9c32-422f-b7a2-8d8fea123188
fail_mode           : secure
name                : br-int
`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows[0].UUID, rows[0].Column("name"))
	// Output: 5c84487c-9c32-422f-b7a2-8d8fea123188 br-int
}

func ExampleConnect() {
	ctx := context.Background()
	db, err := ovsdb.Connect(ctx, "/var/run/openvswitch/db.sock", ovsdb.OVS)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	bridges, err := db.Select(ctx, "Bridge", "name")
	if err != nil {
		log.Fatal(err)
	}
	for _, bridge := range bridges {
		fmt.Println(bridge.UUID, bridge.String("name"))
	}
}
