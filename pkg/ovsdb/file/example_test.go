package file_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
)

func ExampleOpenIndex() {
	index, err := file.OpenIndex(context.Background(), "testdata/small.db")
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()
	for row, err := range index.Rows("Bridge", "name", "fail_mode") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.String("name"), row.String("fail_mode"))
	}
	// Unordered output:
	// br-int secure
	// br-ex standalone
}

func ExampleOpenLog() {
	changes, err := file.OpenLog(context.Background(), nil, "testdata/small.db", file.Selection{Tables: []string{"Bridge"}})
	if err != nil {
		log.Fatal(err)
	}
	defer changes.Close()
	for {
		transaction, err := changes.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, change := range transaction.Changes {
			fmt.Printf("%d %s %s", transaction.Number, change.Kind, change.Table)
			for _, column := range change.Columns {
				fmt.Printf(" %s=%s", column.Column, column.New)
			}
			fmt.Println()
		}
	}
	// Output:
	// 1 inserted Bridge fail_mode=secure name=br-int
	// 2 inserted Bridge name=br-ex
	// 3 modified Bridge fail_mode=standalone
}

func ExampleInspect() {
	_, err := file.Inspect(context.Background(), strings.NewReader("<html>not a database</html>"))
	fmt.Println(err)
	// Output: not an OVSDB database: it is text that starts with "<html>not a database</html>"
}
