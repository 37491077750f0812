package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"pawl/internal/vfs"
)

// generation is one that this process has made.
type generation struct {
	number uint32
	path   string // of the segment file
	size   int    // bytes of the segment file
	salt   uint64

	file    vfs.File // ours: zero-filling, fdatasync, truncation
	segment segment  // the library's: every entry

	// image is the file as it will be. Groups are built in it, and bodies read
	// from it until it is given to another generation. Bytes below tail change
	// no more.
	image []byte
	tail  int // where the next entry goes; guarded by Log.mu

	dirty bool // written since the last sync; guarded by Log.writing
}

// marksBytes at the end of a generation are kept for an idle and a closed mark.
const marksBytes = 2 * markEntryBytes

// room is how many bytes of records a group at tail could have.
func (g *generation) room() int {
	n := g.size - marksBytes - g.tail - prefixBytes
	return max(n-n%alignBytes-headerBytes, 0)
}

// fits says whether the next group could have n bytes of records.
func (g *generation) fits(n int) bool {
	return g.tail+prefixBytes+padded(headerBytes+n)+marksBytes <= g.size
}

// sizeFor is the size of a generation whose first group can have n bytes of
// records: the usual one, or for one big command what that takes.
func sizeFor(usual, n int) int {
	least := firstGroup + prefixBytes + padded(headerBytes+n) + marksBytes
	const page = 4096
	return max(usual, (least+page-1)&^(page-1))
}

func generationDir(dir string, number uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%010d", number))
}

func segmentPath(dir string, number uint32) string {
	return filepath.Join(generationDir(dir, number), segmentName)
}

// generationNumber is the number that a name in the log's directory stands for.
func generationNumber(name string) (uint32, bool) {
	if len(name) != 10 {
		return 0, false
	}
	n, err := strconv.ParseUint(name, 10, 32)
	return uint32(n), err == nil && n > 0 && name == fmt.Sprintf("%010d", n)
}

// makeGeneration makes a directory with a segment file of size zeros but for a
// birth entry, and returns when all of it is durable. The birth says that
// linked is a linked generation and that durable is on disk, so that either can
// be missed later. On an error it leaves nothing behind if it can.
func makeGeneration(opt Options, store StoreID, number uint32, size int, linked uint32, durable LSN, image []byte) (g *generation, err error) {
	dir := generationDir(opt.Dir, number)
	if err := opt.FS.Mkdir(dir, dirPerm); err != nil {
		return nil, fmt.Errorf("make generation %d: %w", number, err)
	}
	g = &generation{number: number, path: segmentPath(opt.Dir, number), size: size, tail: firstGroup}
	defer func() {
		if err != nil {
			err = fmt.Errorf("make generation %d: %w", number, err)
			g.abandon()
			removeGeneration(opt.FS, opt.Dir, number)
			g = nil
		}
	}()
	var salt [8]byte
	if _, err := io.ReadFull(opt.Random, salt[:]); err != nil {
		return g, fmt.Errorf("salt: %w", err)
	}
	g.salt = binary.LittleEndian.Uint64(salt[:])
	if native, ok := opt.FS.(vfs.Native); ok {
		s, err := createLibrarySegment(native.NativePath(dir))
		if err != nil {
			return g, err
		}
		g.segment = s
	}
	if g.file, err = opt.FS.OpenFile(g.path, os.O_RDWR|os.O_CREATE, filePerm); err != nil {
		return g, err
	}
	if g.segment == nil {
		g.segment = &plainSegment{file: g.file}
	}
	if err := fillZeros(g.file, size); err != nil {
		return g, err
	}
	if len(image) != size {
		image = make([]byte, size)
	}
	g.image = image
	entry := g.image[:birthEntryBytes]
	binary.LittleEndian.PutUint32(entry[prefixBytes+headerBytes:], linked)
	binary.LittleEndian.PutUint32(entry[prefixBytes+headerBytes+4:], uint32(size))
	encodeEntry(entry, &header{kind: kindBirth, salt: g.salt, store: store, durable: durable, generation: number}, birthBytes)
	if err := g.segment.append(entry, len(entry)); err != nil {
		return g, err
	}
	if err := g.file.Sync(); err != nil {
		return g, err
	}
	if err := opt.FS.SyncDir(dir); err != nil {
		return g, err
	}
	return g, opt.FS.SyncDir(opt.Dir)
}

// fillZeros writes size zeros: blocks that are there and written need no change
// of metadata when entries come, so fdatasync has only data to write.
func fillZeros(f vfs.File, size int) error {
	block := zeroBlock[:]
	for at := 0; at < size; at += len(block) {
		if _, err := f.WriteAt(block[:min(len(block), size-at)], int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// zeroBlock is only read.
var zeroBlock [256 << 10]byte

// abandon closes what is open of a generation that nothing will be written to.
func (g *generation) abandon() {
	if g.segment != nil {
		g.segment.close()
	}
	if g.file != nil {
		g.file.Close()
	}
}

// removeGeneration removes the directory of a generation and what is in it. The
// caller syncs dir. What is gone already is no error.
func removeGeneration(fsys vfs.FS, dir string, number uint32) error {
	path := generationDir(dir, number)
	files, err := fsys.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := fsys.Remove(filepath.Join(path, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
