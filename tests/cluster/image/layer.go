package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// entry is one path of a layer. Its content is read from source when the layer is written.
type entry struct {
	header tar.Header
	source string
}

// layer holds entries by their path in the image, without the leading slash.
type layer struct {
	entries map[string]entry
}

func newLayer() *layer { return &layer{entries: map[string]entry{}} }

// addFile takes SOURCE:TARGET[:MODE[:UID]]. Without a mode the file keeps its own, reduced to what everybody may do.
func (l *layer) addFile(text string) error {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 4 {
		return fmt.Errorf("%q is not SOURCE:TARGET[:MODE[:UID]]", text)
	}
	// Stat follows links: a link given by name means the file that it leads to.
	info, err := os.Stat(parts[0])
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file; --tree takes a directory", parts[0])
	}
	mode, owner, err := modeAndOwner(parts[2:], plainMode(info))
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	l.put(parts[1], entry{source: parts[0], header: tar.Header{Typeflag: tar.TypeReg, Size: info.Size(), Mode: mode, Uid: owner, Gid: owner}})
	return nil
}

// addTree takes SOURCE:TARGET and copies files, directories and symbolic links.
func (l *layer) addTree(text string) error {
	source, target, found := strings.Cut(text, ":")
	if !found {
		return fmt.Errorf("%q is not SOURCE:TARGET", text)
	}
	return filepath.WalkDir(source, func(file string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		return l.addFound(file, path.Join(target, filepath.ToSlash(inside)), found)
	})
}

func (l *layer) addFound(file, target string, found fs.DirEntry) error {
	info, err := found.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		l.put(target, directory(0o755, 0))
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(file)
		if err != nil {
			return err
		}
		l.put(target, link(to))
	case info.Mode().IsRegular():
		l.put(target, entry{source: file, header: tar.Header{Typeflag: tar.TypeReg, Size: info.Size(), Mode: plainMode(info)}})
	default:
		return fmt.Errorf("%s is neither file, directory nor link", file)
	}
	return nil
}

// library finds the absolute paths in ldd's lines: "libm.so.6 => /lib/libm.so.6 (0x…)" and "/lib64/ld-linux.so.2 (0x…)".
var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$`)

// addLibraries puts each library where the dynamic linker looks for it on this machine.
func (l *layer) addLibraries(program string) error {
	listed, err := exec.Command("ldd", program).Output()
	if err != nil {
		return fmt.Errorf("failed to list the libraries of %s: %w", program, err)
	}
	for _, match := range library.FindAllStringSubmatch(string(listed), -1) {
		if err := l.addFile(match[1] + ":" + match[1]); err != nil {
			return err
		}
	}
	return nil
}

// addDirectory takes TARGET[:MODE[:UID]].
func (l *layer) addDirectory(text string) error {
	parts := strings.Split(text, ":")
	mode, owner, err := modeAndOwner(parts[1:], 0o755)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	l.put(parts[0], directory(mode, owner))
	return nil
}

// addLink takes TARGET:POINTS-TO.
func (l *layer) addLink(text string) error {
	target, to, found := strings.Cut(text, ":")
	if !found {
		return fmt.Errorf("%q is not TARGET:POINTS-TO", text)
	}
	l.put(target, link(to))
	return nil
}

// put adds the entry, and the directories above it where nothing was said of them.
func (l *layer) put(target string, added entry) {
	name := strings.TrimPrefix(path.Clean("/"+target), "/")
	if name == "" {
		return
	}
	l.entries[name] = added
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if _, known := l.entries[above]; !known {
			l.entries[above] = directory(0o755, 0)
		}
	}
}

// write gives the layer as a tar stream. Sorting puts a directory before what is in it.
func (l *layer) write(to io.Writer) error {
	names := make([]string, 0, len(l.entries))
	for name := range l.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	archive := tar.NewWriter(to)
	for _, name := range names {
		if err := writeEntry(archive, name, l.entries[name]); err != nil {
			return fmt.Errorf("failed to add /%s: %w", name, err)
		}
	}
	return archive.Close()
}

func writeEntry(archive *tar.Writer, name string, from entry) error {
	header := from.header
	header.Name = name
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := archive.WriteHeader(&header); err != nil || from.source == "" {
		return err
	}
	file, err := os.Open(from.source)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(archive, file)
	return err
}

func directory(mode int64, owner int) entry {
	return entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: mode, Uid: owner, Gid: owner}}
}

func link(to string) entry {
	return entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}}
}

// plainMode forgets the umask of whoever made the file: readable by all, executable by all or nobody.
func plainMode(info fs.FileInfo) int64 {
	if info.Mode()&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

func modeAndOwner(parts []string, mode int64) (int64, int, error) {
	owner := 0
	if len(parts) > 0 {
		given, err := strconv.ParseInt(parts[0], 8, 32)
		if err != nil {
			return 0, 0, fmt.Errorf("mode: %w", err)
		}
		mode = given
	}
	if len(parts) > 1 {
		given, err := strconv.Atoi(parts[1])
		if err != nil {
			return 0, 0, fmt.Errorf("owner: %w", err)
		}
		owner = given
	}
	return mode, owner, nil
}
