package wire

// Version is the version of the protocol.
const Version = 1

// Procedures of a server.
const (
	ProcHello uint32 = iota + 1
	ProcStat
	ProcOpen
	ProcClose
	ProcList
	ProcWindow
	ProcRead
	ProcReadMany
	ProcTicket
	ProcStream
	ProcSum
	ProcMkdir
	ProcPut
	ProcCreate
	ProcStaging
	ProcWrite
	ProcCommit
	ProcAbort
)

// Bounds of messages.
const (
	MaxMessage = 1 << 20   // 1 MiB: the longest request or answer
	MaxSmall   = 64 << 10  // 64 KiB: content inside of a message
	MaxName    = 4096      // bytes, as PATH_MAX of <linux/limits.h>
	MaxElement = 255       // bytes, as NAME_MAX
	MaxID      = 64        // bytes
	MaxPage    = 1024      // entries of an answer to List
	MaxNames   = 256       // of ReadMany
	maxText    = 1 << 10   // 1 KiB
	maxETag    = 80        // bytes
	maxSum     = 64        // bytes
	maxWay     = 8         // bytes
	TicketLen  = 16        // bytes
	MaxRead    = 64 << 20  // 64 MiB: of a Read
	ManyBytes  = 512 << 10 // 512 KiB: of contents, before the last one of an answer to ReadMany
)

// Status begins each answer. The rest follows only if Code is 0.
type Status struct {
	Code  uint32 // an errno, or one of those below
	Text  string
	Bytes int64 // that had been moved before it failed
}

// Codes that are no errno.
const (
	CodeChanged uint32 = 1<<16 + iota
	CodeChecksum
	CodeNotSmall
	CodeVersion
	CodeShort   // the file ended
	CodeHandle  // is not known
	CodeTrouble // anything without an errno
)

func (m *Status) fields(c *codec) {
	c.u32(&m.Code)
	if m.Code == 0 {
		return
	}
	c.str(&m.Text, maxText)
	c.size(&m.Bytes)
}

// Fail returns the status of an error, whose text is cut to its bound.
func Fail(code uint32, text string, bytes int64) *Status {
	return &Status{code, text[:min(len(text), maxText)], bytes}
}

// Split takes the status off an answer.
func Split(b []byte) (s Status, rest []byte, err error) {
	c := codec{in: b}
	s.fields(&c)
	return s, c.in, c.err
}

// Info describes a file.
type Info struct {
	Name  string // its last element
	Size  int64
	Mode  uint32 // as fs.FileMode
	ModNs int64  // since 1970
	ETag  string
}

func (m *Info) fields(c *codec) {
	c.str(&m.Name, MaxElement)
	c.size(&m.Size)
	c.u32(&m.Mode)
	c.i64(&m.ModNs)
	c.str(&m.ETag, maxETag)
}

// Hello is the first request.
type Hello struct {
	Version uint32
	Trusted bool // TCP without encryption is fine
}

func (m *Hello) fields(c *codec) {
	c.u32(&m.Version)
	c.flag(&m.Trusted)
}

// Welcome is its answer.
type Welcome struct {
	Version  uint32
	Calls    uint32 // that may be under way at a time
	Writable bool
	DataPort uint32 // for tickets; 0: there are none
}

func (m *Welcome) fields(c *codec) {
	c.u32(&m.Version)
	c.u32(&m.Calls)
	c.flag(&m.Writable)
	c.u32(&m.DataPort)
}

// Name is a request about a name. Dir asks for a directory.
type Name struct {
	Name string
	Dir  bool
}

func (m *Name) fields(c *codec) {
	c.str(&m.Name, MaxName)
	c.flag(&m.Dir)
}

// Opened is the answer to Open.
type Opened struct {
	Handle uint64
	Info   Info
}

func (m *Opened) fields(c *codec) {
	c.u64(&m.Handle)
	m.Info.fields(c)
}

// Handle is a request about something that is open, or an answer that names it.
type Handle struct{ Handle uint64 }

func (m *Handle) fields(c *codec) { c.u64(&m.Handle) }

// Page is the answer to List. It is the last one if it has no entries.
type Page struct{ Entries []Info }

func (m *Page) fields(c *codec) { list(c, &m.Entries, MaxPage, func(e *Info) { e.fields(c) }) }

// Target is the answer to Window: its number, and which way bytes go there at present.
type Target struct {
	Handle uint64
	Way    string
}

func (m *Target) fields(c *codec) {
	c.u64(&m.Handle)
	c.str(&m.Way, maxWay)
}

// Window offers an export to the server, or is the server's offer of its staging memory.
type Window struct {
	Export uint32
	Bytes  int64
}

func (m *Window) fields(c *codec) {
	c.u32(&m.Export)
	c.size(&m.Bytes)
}

// Read asks for bytes of a file: in a window, or in the answer if Window is 0.
type Read struct {
	Handle   uint64
	Off, Len int64
	Window   uint64
	At       int64 // in the window
}

func (m *Read) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Off)
	c.size(&m.Len)
	c.u64(&m.Window)
	c.size(&m.At)
}

// Moved is the answer to Read, Stream and Write.
type Moved struct {
	Bytes   int64
	Way     string // of the bytes
	Content []byte // if the request named no window
}

func (m *Moved) fields(c *codec) {
	c.size(&m.Bytes)
	c.str(&m.Way, maxWay)
	c.blob(&m.Content, MaxSmall)
}

// Names is the request of ReadMany.
type Names struct {
	Names []string
	Kind  string // of the checksums
}

func (m *Names) fields(c *codec) {
	list(c, &m.Names, MaxNames, func(s *string) { c.str(s, MaxName) })
	c.str(&m.Kind, maxSum)
}

// Contents is its answer: for the first names, as many as have room.
type Contents struct{ Files []Content }

// Content is a file, or why there is none.
type Content struct {
	Status  Status
	Info    Info
	Content []byte
	Sum     []byte
}

func (m *Contents) fields(c *codec) {
	list(c, &m.Files, MaxNames, func(f *Content) {
		f.Status.fields(c)
		if f.Status.Code == 0 {
			f.Info.fields(c)
			c.blob(&f.Content, MaxSmall)
			c.blob(&f.Sum, maxSum)
		}
	})
}

// Ticket lets one TCP connection in. Conn is the number under which Stream names it.
type Ticket struct {
	Conn   uint64
	Ticket []byte
}

func (m *Ticket) fields(c *codec) {
	c.u64(&m.Conn)
	c.blob(&m.Ticket, TicketLen)
}

// Stream asks for bytes of a file through a TCP connection.
type Stream struct {
	Handle   uint64
	Off, Len int64
	Conn     uint64
}

func (m *Stream) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Off)
	c.size(&m.Len)
	c.u64(&m.Conn)
}

// Range asks for the checksum of bytes of a file or an upload.
type Range struct {
	Handle   uint64
	Kind     string
	Off, Len int64
}

func (m *Range) fields(c *codec) {
	c.u64(&m.Handle)
	c.str(&m.Kind, maxSum)
	c.size(&m.Off)
	c.size(&m.Len)
}

// Sum is its answer.
type Sum struct{ Sum []byte }

func (m *Sum) fields(c *codec) { c.blob(&m.Sum, maxSum) }

// Create begins an upload, or makes a directory.
type Create struct {
	Name      string
	Perm      uint32
	ModNs     int64 // 0: of the commit
	NoReplace bool
	NoSync    bool
	ID        string
}

func (m *Create) fields(c *codec) {
	c.str(&m.Name, MaxName)
	c.u32(&m.Perm)
	c.i64(&m.ModNs)
	c.flag(&m.NoReplace)
	c.flag(&m.NoSync)
	c.str(&m.ID, MaxID)
}

// Created is the answer to Create.
type Created struct {
	Handle uint64
	Size   int64 // that is there
}

func (m *Created) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Size)
}

// Put is an upload with one request.
type Put struct {
	Create  Create
	Content []byte
	Kind    string // of the checksum
	Sum     []byte
}

func (m *Put) fields(c *codec) {
	m.Create.fields(c)
	c.blob(&m.Content, MaxSmall)
	c.str(&m.Kind, maxSum)
	c.blob(&m.Sum, maxSum)
}

// Write says that bytes of an upload are in the staging memory, at At.
type Write struct {
	Handle   uint64
	Off, Len int64
	At       int64
}

func (m *Write) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Off)
	c.size(&m.Len)
	c.size(&m.At)
}

// Commit ends an upload.
type Commit struct {
	Handle uint64
	Size   int64
	Kind   string
	Sum    []byte
}

func (m *Commit) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Size)
	c.str(&m.Kind, maxSum)
	c.blob(&m.Sum, maxSum)
}

// Empty is a request or an answer without fields.
type Empty struct{}

func (*Empty) fields(*codec) {}
