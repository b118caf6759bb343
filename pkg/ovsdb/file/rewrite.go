package file

import (
	"context"
	"fmt"
	"io"
)

// Transactions calls use with the JSON text of each transaction of the standalone database file at path, which must be
// without damage, as Standalone writes it. A text is valid until use returns.
func Transactions(ctx context.Context, path string, use func(text []byte) error) error {
	return eachRecord(ctx, path, func(record *record) error {
		if record.number == 1 { // the schema
			return nil
		}
		return use(record.body)
	})
}

// Rewrite works like Transactions for the file src, and writes dst with the text of each transaction as change returns
// it, with the lengths and sums of the new texts. dst is replaced as a whole or not at all.
func Rewrite(ctx context.Context, src, dst string, change func(text []byte) ([]byte, error)) error {
	return writeFile(dst, func(out *output) error {
		return eachRecord(ctx, src, func(record *record) error {
			if record.number == 1 {
				return out.addSchema(record.body)
			}
			text, err := change(record.body)
			if err != nil {
				return err
			}
			return out.add(text)
		})
	})
}

// eachRecord calls use with each record of a standalone database file without damage.
func eachRecord(ctx context.Context, path string, use func(record *record) error) error {
	from, err := openSource(ctx, nil, path)
	if err != nil {
		return err
	}
	defer from.close()
	if from.info.Form != FormStandalone {
		return fmt.Errorf("%s is a file of a member of a cluster", path)
	}
	for {
		record, err := from.next()
		if err == io.EOF {
			return nil
		}
		if err == nil && !record.intact {
			err = fmt.Errorf("record %d is damaged", record.number)
		}
		if err == nil {
			err = use(record)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}
