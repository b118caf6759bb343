package sets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// What a folder of recorded sets holds besides the sets: all that they were made of, and the hash of each file, as
// sha256sum(1) takes it.
const (
	madeOfFile = "made-of"
	sumsFile   = "SHA256SUMS"
)

// tries is how often a set is recorded whose packets go another way than the lab was built for: a datapath in user space
// loses packets on a busy machine.
const tries = 3

// makers are the folders below the repository whose files decide what a set holds.
func makers() []string {
	return []string{"scripts/lab", "test/oracle/sets", "answer/trace/frame", "internal/unixctl", "internal/command"}
}

// readers are the files of this package that work with sets when they are recorded.
func readers() []string {
	return []string{"cache.go", "copies.go", "kept.go", "once.go", "renumber.go", "workdirs.go"}
}

// tools are the programs whose versions decide what a set holds, each with the option that prints its version.
func tools() [][]string {
	return [][]string{{"ovs-vswitchd", "--version"}, {"ovsdb-server", "--version"}, {"ovn-northd", "--version"}, {"ovn-controller", "--version"},
		{"iptables", "--version"}, {"nft", "--version"}, {"ipset", "--version"}, {"conntrack", "--version"}, {"ip", "-V"}, {"/usr/bin/python3", "-c", "import sos; print(sos.__version__)"}}
}

// Available returns the names of the sets that can run on this machine, and why others cannot, "" if all can.
func Available() (names []string, missing string) {
	names = Names()
	if missing := MissingForNamespaces(); missing != "" {
		return names, "without the sets with network namespaces: " + missing
	}
	names = slices.Concat(names, NamespaceNames(), OwnNames())
	if missing := MissingForVRFs(); missing != "" {
		return names, "without the sets with VRFs: " + missing
	}
	return append(names, VRFNames()...), ""
}

// Cached returns the folder below dir that holds the available sets, a folder each, and a node of each topology alone,
// as what is installed and what is below top, the repository, make them. It is named for a hash of all of that. If the
// folder is missing, or does not hold just what was written into it, it is filled with the kept sets, or all are recorded
// if these were made by something else or anew is set. What is done goes to out.
func Cached(ctx context.Context, top, dir string, anew bool, out io.Writer) (string, error) {
	recipe, names, err := recipeOf(ctx, top, out)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, fmt.Sprintf("%.16x", sha256.Sum256([]byte(recipe))))
	if anew {
		if err := os.RemoveAll(folder); err != nil {
			return "", err
		}
	}
	return folder, keep(folder, recipe, out, func(staged string) error {
		used := false
		if !anew {
			if used, err = unpackKept(ctx, top, recipe, staged, out); err != nil {
				return err
			}
		}
		if !used {
			if err := recordAll(ctx, labOf(top), names, staged, &lines{out: out}); err != nil {
				return err
			}
		}
		if !HasSos() {
			return nil
		}
		fmt.Fprintln(out, "sets: a node alone, by sos as well")
		return recordWithSos(ctx, labOf(top), filepath.Join(staged, nodesFolder, sosFolder))
	})
}

// recipeOf returns the names of the available sets, and all that decides what they hold. out has what is not available.
func recipeOf(ctx context.Context, top string, out io.Writer) (recipe string, names []string, err error) {
	names, missing := Available()
	if missing != "" {
		fmt.Fprintln(out, missing)
	}
	recipe, err = madeOf(ctx, top, names)
	return recipe, names, err
}

// labOf returns the path of the lab's program.
func labOf(top string) string { return filepath.Join(top, "scripts/lab/lab") }

// recordAll records the sets of these names, and a node of each topology alone, into folders of their own. Two are recorded at a time: each
// waits for its daemons and packets much of its time.
func recordAll(ctx context.Context, lab string, names []string, staged string, out io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, name := range names {
		group.Go(func() error {
			return recordAgain(ctx, Options{Lab: lab, Name: name}, filepath.Join(staged, name), out)
		})
	}
	for _, topology := range topologies() {
		group.Go(func() error {
			err := recordNode(ctx, lab, topology, filepath.Join(staged, nodesFolder, topology))
			if err == nil {
				fmt.Fprintln(out, "a node alone:", topology)
			}
			return err
		})
	}
	return group.Wait()
}

// lines is a writer for several who write at a time.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(text)
}

// keep leaves a folder as it is that holds just what was written into it by the same recipe. Otherwise it has record fill a new
// one, which takes the folder's place once it is complete.
func keep(folder, recipe string, out io.Writer, record func(staged string) error) (err error) {
	if _, err := os.Stat(folder); err == nil {
		if err = intact(folder, recipe); err == nil {
			fmt.Fprintln(out, "sets: those recorded in", folder)
			return nil
		}
		fmt.Fprintln(out, "sets: recorded anew:", err)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	staged, err := os.MkdirTemp(filepath.Dir(folder), ".recording-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staged)) }()
	if err := record(staged); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(staged, madeOfFile), []byte(recipe), 0o644); err != nil {
		return err
	}
	sums, err := sumsOf(staged)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(staged, sumsFile), []byte(sums), 0o644); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.Chmod(staged, 0o755)); err != nil {
		return err
	}
	return os.Rename(staged, folder)
}

// Record runs a set into dir, and prints what it sent and how long that took. It fails with ErrSurprised if packets went
// another way than the lab was built for.
func Record(ctx context.Context, o Options, dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s, err := Run(ctx, o, dir)
	if err != nil {
		return err
	}
	fmt.Fprint(out, s.summary())
	if len(s.Surprises) > 0 {
		return fmt.Errorf("set %s: %d %w", o.Name, len(s.Surprises), ErrSurprised)
	}
	return nil
}

// ErrSurprised is the error of Record when a set does not show what it was written for.
var ErrSurprised = errors.New("packets went another way than the lab was built for")

// recordAgain works like Record, for a folder of its own, and runs a set again in which packets were lost.
func recordAgain(ctx context.Context, o Options, dir string, out io.Writer) error {
	for try := 1; ; try++ {
		err := Record(ctx, o, dir, out)
		if !errors.Is(err, ErrSurprised) || try == tries {
			return err
		}
		fmt.Fprintf(out, "%v: it runs again (try %d)\n", err, try+1)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
}

// summary says what a run sent, how long it took, and what went another way.
func (s *Set) summary() string {
	classes := map[string]int{}
	established := 0
	for _, p := range s.Packets {
		classes[p.Class]++
		if p.Established {
			established++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d packets (%d delivered, %d dropped, %d answered; %d of established connections), %d before the capture\n", s.Name, len(s.Packets), classes[Delivered], classes[Dropped], classes[Generated], established, len(s.Earlier))
	fmt.Fprintf(&b, "up %.1f s, connections %.1f s, capture %.1f s, packets %.1f s\n", s.Timing.Up, s.Timing.Earlier, s.Timing.Capture, s.Timing.Packets)
	for _, surprise := range s.Surprises {
		fmt.Fprintln(&b, "surprise:", surprise)
	}
	return b.String()
}

// madeOf lists all that decides what the sets hold: their names, the hashes of the files that make them, and the
// versions of the programs.
func madeOf(ctx context.Context, top string, names []string) (string, error) {
	var b strings.Builder
	fmt.Fprintln(&b, "sets", strings.Join(names, " "))
	for _, folder := range makers() {
		err := filepath.WalkDir(filepath.Join(top, folder), func(path string, e fs.DirEntry, err error) error {
			isReader := folder == "test/oracle/sets" && slices.Contains(readers(), e.Name())
			if err != nil || e.IsDir() || isReader || strings.HasSuffix(path, "_test.go") || path == filepath.Join(top, keptFile) {
				return err
			}
			sum, err := sumOf(path)
			if err != nil {
				return err
			}
			named, err := filepath.Rel(top, path)
			fmt.Fprintf(&b, "%s  %s\n", sum, filepath.ToSlash(named))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	for _, argv := range tools() {
		printed, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			printed = []byte(err.Error()) // a set that needs the program is not among the names
		}
		line, _, _ := strings.Cut(string(printed), "\n")
		fmt.Fprintf(&b, "%s: %s\n", argv[0], line)
	}
	return b.String(), ctx.Err()
}

// intact returns what is wrong with a folder of recorded sets, nil if it holds just what was written into it, by the
// same recipe.
func intact(folder, recipe string) error {
	made, err := os.ReadFile(filepath.Join(folder, madeOfFile))
	if err != nil {
		return err
	}
	if string(made) != recipe {
		return fmt.Errorf("%s was made of something else", folder)
	}
	want, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		return err
	}
	have, err := sumsOf(folder)
	if err == nil && have != string(want) {
		err = fmt.Errorf("%s does not hold what was written into it", folder)
	}
	return err
}

// sumsOf lists the files below a folder with their hashes, but for the list of hashes itself.
func sumsOf(folder string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == filepath.Join(folder, sumsFile) {
			return err
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		named, err := filepath.Rel(folder, path)
		fmt.Fprintf(&b, "%s  %s\n", sum, named)
		return err
	})
	return b.String(), err
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
