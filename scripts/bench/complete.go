package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

const (
	nbSchema       = "/usr/share/ovn/ovn-nb.ovsschema"
	completedPorts = 4000
)

// complete measures what TAB takes after `trace` in a set of three nodes whose southbound
// database has mostly logical flows: with the northbound database, and without it.
func (s sizes) complete(megabytes int) bench {
	both, alone := s.path("complete-both"), s.path("complete-sb")
	title := fmt.Sprintf("completion of names, %d MB southbound database", megabytes)
	const withNB, withoutNB = "with the NB database", "without it"
	names := func(folder string) func() []step {
		return func() []step { return []step{{s.ours(folder, "__complete", "trace", "")}} }
	}
	return bench{
		name: title,
		targets: []target{
			duration(title+", "+withNB, withNB, 300),
			duration(title+", "+withoutNB, withoutNB, 300),
		},
		prepare: func(ctx context.Context) error {
			nb, sb := s.path("names-nb.db"), s.path("names-sb.db")
			if err := errors.Join(create(nb, writeNB), create(sb, func(w io.Writer) error { return writeBindings(w, int64(megabytes)<<20) })); err != nil {
				return err
			}
			for _, node := range []string{"n1", "n2", "n3"} {
				for _, folder := range []string{both, alone} {
					if err := s.collectDatabase(ctx, filepath.Join(folder, node), "sb", sb); err != nil {
						return err
					}
				}
				if err := s.collectDatabase(ctx, filepath.Join(both, node), "nb", nb); err != nil {
					return err
				}
			}
			return nil
		},
		ways: []way{{name: withNB, steps: names(both)}, {name: withoutNB, steps: names(alone)}},
		finish: func(context.Context) error {
			return errors.Join(os.RemoveAll(both), os.RemoveAll(alone))
		},
	}
}

func (s sizes) collectDatabase(ctx context.Context, wd, kind, path string) error {
	return do(ctx, s.program, "-w", wd, "collect-db-ovn-"+kind, path)
}

// writeNB writes a northbound database with ports.
func writeNB(w io.Writer) error {
	if err := writeDatabase(w, nbSchema, 0); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(3, 4))
	rows := map[string]any{}
	for i := range completedPorts {
		rows[newUUID(random)] = map[string]any{"name": portName(i)}
	}
	return writeTransaction(w, map[string]any{"NB_Global": map[string]any{newUUID(random): map[string]any{"nb_cfg": 1}}, "Logical_Switch_Port": rows})
}

// writeBindings writes a southbound database with the same ports, of about size bytes.
func writeBindings(w io.Writer, size int64) error {
	if err := writeDatabase(w, sbSchema, size); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(5, 6))
	rows := map[string]any{}
	for i := range completedPorts {
		rows[newUUID(random)] = map[string]any{"logical_port": portName(i), "tunnel_key": i + 1}
	}
	return writeTransaction(w, map[string]any{"SB_Global": map[string]any{newUUID(random): map[string]any{"nb_cfg": 1}}, "Port_Binding": rows})
}

func portName(i int) string { return fmt.Sprintf("ns%d_pod-%d", i%100, i) }

func writeTransaction(w io.Writer, tables map[string]any) error {
	raw, err := json.Marshal(tables)
	if err == nil {
		_, err = writeRecord(w, raw)
	}
	return err
}
