package file

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Copy is a standalone copy of a database file, without damage, that has no name: nothing of it is left when the program
// ends, however it ends.
type Copy struct {
	src  string
	file *os.File
}

// NewCopy copies the database file src as Standalone does. The copy takes space in folder or, if that is not writable, in
// the folder for temporary files.
func NewCopy(ctx context.Context, src, folder string) (*Copy, error) {
	unnamed, err := unnamedFile(folder)
	if err != nil {
		return nil, fmt.Errorf("copying %s: %w", src, err)
	}
	out := outputTo(unnamed)
	if _, _, err = writeStandalone(ctx, src, out); err == nil {
		err = out.buf.Flush()
	}
	if err != nil {
		unnamed.Close()
		return nil, err
	}
	return &Copy{src: src, file: unnamed}, nil
}

// Close gives the space of the copy back.
func (c *Copy) Close() error { return c.file.Close() }

// Transactions calls use with the JSON text of each transaction. A text is valid until use returns.
func (c *Copy) Transactions(ctx context.Context, use func(text []byte) error) error {
	return c.eachRecord(ctx, func(record *record) error {
		if record.number == 1 { // the schema
			return nil
		}
		return use(record.body)
	})
}

// Rewrite works like Transactions, and writes the database file dst with the text of each transaction as change returns
// it, with the lengths and sums of the new texts. dst is replaced as a whole or not at all.
func (c *Copy) Rewrite(ctx context.Context, dst string, change func(text []byte) ([]byte, error)) error {
	return writeFile(dst, func(out *output) error {
		return c.eachRecord(ctx, func(record *record) error {
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

// eachRecord calls use with each record.
func (c *Copy) eachRecord(ctx context.Context, use func(record *record) error) error {
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from, err := newSource(ctx, c.file)
	if err != nil {
		return fmt.Errorf("%s: %w", c.src, err)
	}
	defer from.close()
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
			return fmt.Errorf("%s: %w", c.src, err)
		}
	}
}
