package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"pawl/internal/vfs"
)

// Sample makes in the directory to, which is there and empty, a copy of the log
// in from that Find and Reader take for a log at rest, although from may be being
// written. Every group that was durable when Sample was called is in it, and
// nothing in it vouches for a group that is not. It is for looking at and not for
// keeping: sealed generations are hard links, and nothing is synced. An error that
// matches fs.ErrNotExist says that generations went meanwhile: remove the copy
// and try again.
//
// What vouches for a group was written when that was durable. So who vouches is
// copied first: the newest generation before the older ones, and the end of a file
// before its beginning.
func Sample(fsys vfs.FS, from, to string) error {
	numbers, err := withSegments(fsys, from)
	if err != nil {
		return fmt.Errorf("sample log: %w", err)
	}
	linked := false // a generation that was copied is
	for _, number := range slices.Backward(numbers) {
		if err := fsys.Mkdir(generationDir(to, number), dirPerm); err != nil {
			return fmt.Errorf("sample generation %d: %w", number, err)
		}
		// Generations are linked in the order of their numbers: behind a linked one
		// nothing is written any more, only cut off where its history ends.
		if linked {
			err = fsys.Link(segmentPath(from, number), segmentPath(to, number))
		} else {
			linked, err = sampleUnsealed(fsys, from, to, number)
		}
		if err != nil {
			return fmt.Errorf("sample generation %d: %w", number, err)
		}
	}
	return nil
}

// withSegments lists the generations in a log, but for those that had no segment
// file before: half made, or half dropped, and of no consequence either way.
func withSegments(fsys vfs.FS, dir string) (numbers []uint32, err error) {
	before, err := generationNumbers(fsys, dir)
	if err != nil {
		return nil, err
	}
	var bare []uint32
	for _, number := range before {
		if _, err := fsys.Stat(segmentPath(dir, number)); errors.Is(err, fs.ErrNotExist) {
			bare = append(bare, number)
		} else if err != nil {
			return nil, err
		}
	}
	numbers, err = generationNumbers(fsys, dir)
	return slices.DeleteFunc(numbers, func(number uint32) bool { return slices.Contains(bare, number) }), err
}

// generationNumbers lists the directories of generations in a log, by number.
func generationNumbers(fsys vfs.FS, dir string) (numbers []uint32, err error) {
	names, err := fsys.ReadDir(dir)
	for _, name := range names {
		if number, ok := generationNumber(name.Name()); ok && name.IsDir() {
			numbers = append(numbers, number)
		}
	}
	return numbers, err
}

// sampleBlock is how much of a file is looked at as one.
const sampleBlock = 16 << 10

// sampleUnsealed copies a generation that may be being written, and says whether
// the copy is linked.
func sampleUnsealed(fsys vfs.FS, from, to string, number uint32) (linked bool, err error) {
	in, err := fsys.OpenFile(segmentPath(from, number), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer in.Close()
	size, err := in.Size()
	if err != nil {
		return false, err
	}
	out, err := fsys.OpenFile(segmentPath(to, number), os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return false, err
	}
	defer func() {
		if closing := out.Close(); err == nil {
			err = closing
		}
	}()
	var now, before [sampleBlock]byte
	rest := min(size, MaxGenerationBytes) // what is longer, nobody looks at
	for at := (rest - 1) / sampleBlock * sampleBlock; at >= 0 && rest > 0; at -= sampleBlock {
		n := min(sampleBlock, rest-at)
		if err := readStill(in, now[:n], before[:n], at); err != nil {
			return false, err
		}
		if allZero(now[:n]) {
			continue
		}
		if _, err := out.WriteAt(now[:n], at); err != nil {
			return false, err
		}
	}
	s := scanner{data: now[:min(rest, firstGroup)], generation: number} // the first block was read last
	if _, err := s.next(); err == nil {
		_, err = s.next()
		linked = err == nil
	}
	if made := int64(s.birth.size); linked && size < made {
		// Cut off because it has been sealed since, which the copy does not know; or
		// damaged, which it shall show.
		sealed, err := linkedBehind(fsys, from, number)
		if err != nil {
			return false, err
		}
		if sealed {
			size = made
		}
	}
	return linked, out.Truncate(size)
}

// readStill fills b with bytes of a file that all stood there at one moment. The
// log writes over zeros only (and now and then over the mark of a witness), so
// what is the same in two readings was there between them. Behind the end of the
// file are zeros, which are what is cut off there.
func readStill(f io.ReaderAt, b, before []byte, at int64) error {
	for again := false; ; again = true {
		n, err := f.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		clear(b[n:])
		if again && bytes.Equal(b, before) {
			return nil
		}
		copy(before, b)
	}
}

// linkedBehind says whether a generation with a larger number is linked.
func linkedBehind(fsys vfs.FS, dir string, number uint32) (bool, error) {
	h, err := Find(fsys, dir, FindOptions{Live: true})
	if err != nil {
		return false, err
	}
	return h.newest() > number, nil
}
