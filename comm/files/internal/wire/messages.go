package wire

// Version is the version of the protocol.
const Version = 4

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
	ProcDescriptor
	ProcTaken
	ProcSum
	ProcExtents
	ProcMkdir
	ProcSetAttr
	ProcPut
	ProcCreate
	ProcStaging
	ProcWrite
	ProcCommit
	ProcAbort
	ProcGrowth
)

// Bounds of messages.
const (
	MaxMessage = 1 << 20   // 1 MiB: the longest request or answer
	MaxSmall   = 64 << 10  // 64 KiB: content inside of a message
	MaxName    = 4096      // bytes, as PATH_MAX of <linux/limits.h>
	MaxElement = 255       // bytes, as NAME_MAX
	MaxID      = 64        // bytes
	MaxPage    = 1024      // entries of an answer to List
	MaxExtents = 4096      // of an answer
	MaxNames   = 256       // of ReadMany
	maxText    = 1 << 10   // 1 KiB
	maxETag    = 80        // bytes
	maxSum     = 64        // bytes
	maxWay     = 8         // bytes
	maxSocket  = 107       // bytes, as a name of unix(7)
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
	CodeNoRDMA  // that one of the ends insists on
	CodeGone    // the way of the server to the client's memory, which is a connection of its own
	CodeOutside // a name leads out of what is served
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
	Name    string // its last element
	Size    int64
	Mode    uint32 // as fs.FileMode
	ModTime Time
	ETag    string
	// Allocated is how many bytes it takes on the disk: fewer than Size if it has holes.
	Allocated int64
}

func (m *Info) fields(c *codec) {
	c.str(&m.Name, MaxElement)
	c.size(&m.Size)
	c.u32(&m.Mode)
	m.ModTime.fields(c)
	c.str(&m.ETag, maxETag)
	c.size(&m.Allocated)
}

// Hello is the first request.
type Hello struct {
	Version uint32
	Trusted bool // TCP without encryption is fine
	RDMA    bool // contents must go by RDMA
}

func (m *Hello) fields(c *codec) {
	c.u32(&m.Version)
	c.flag(&m.Trusted)
	c.flag(&m.RDMA)
}

// Welcome is its answer.
type Welcome struct {
	Version  uint32
	Calls    uint32 // that may be under way at a time
	Writable bool
	DataPort uint32 // where tickets let TCP connections in; 0: nowhere
	Socket   string // where they let those of this machine in: a Unix socket; empty: nowhere
	RDMA     bool   // contents must go by RDMA
}

func (m *Welcome) fields(c *codec) {
	c.u32(&m.Version)
	c.u32(&m.Calls)
	c.flag(&m.Writable)
	c.u32(&m.DataPort)
	c.str(&m.Socket, maxSocket)
	c.flag(&m.RDMA)
}

// Name is a request about a name.
type Name struct{ Name string }

func (m *Name) fields(c *codec) { c.str(&m.Name, MaxName) }

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

// List asks for the entries of a directory: for the first ones by its name, and for those that follow by the handle of
// the answer.
type List struct {
	Name   string
	Handle uint64 // 0: the first
}

func (m *List) fields(c *codec) {
	c.str(&m.Name, MaxName)
	c.u64(&m.Handle)
}

// Page is its answer.
type Page struct {
	Handle  uint64 // 0: there are no more
	Entries []Info
}

func (m *Page) fields(c *codec) {
	c.u64(&m.Handle)
	list(c, &m.Entries, MaxPage, func(e *Info) { e.fields(c) })
}

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

// Moved is the answer to Read, Stream, Taken and Write.
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
	Conn  uint64 // by which the contents come, one behind the other; 0: in the answer
}

func (m *Names) fields(c *codec) {
	list(c, &m.Names, MaxNames, func(s *string) { c.str(s, MaxName) })
	c.str(&m.Kind, maxSum)
	c.u64(&m.Conn)
}

// Contents is its answer: for the first names, as many as have room.
type Contents struct{ Files []Content }

// size is about how long the message is: what it does not count is short.
func (m *Contents) size() (n int) {
	for i := range m.Files {
		n += 512 + len(m.Files[i].Content)
	}
	return n
}

// Content is a file, or why there is none. Content is empty if it comes by a connection.
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

// DataConn asks for a ticket.
type DataConn struct {
	Local bool // for the Unix socket
}

func (m *DataConn) fields(c *codec) { c.flag(&m.Local) }

// Ticket lets one connection in. Conn is the number under which Stream and Descriptor name it.
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

// Descriptor asks for a descriptor of a file through a connection of the Unix socket. It has come before the answer.
type Descriptor struct{ Handle, Conn uint64 }

func (m *Descriptor) fields(c *codec) {
	c.u64(&m.Handle)
	c.u64(&m.Conn)
}

// Taken says how many bytes the client has read through the descriptor of a file, since it last said so. The answer is a
// Moved if the file has not changed.
type Taken struct {
	Handle uint64
	Bytes  int64
}

func (m *Taken) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Bytes)
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

// Grown answers a Handle: whether the file has grown, which is no change from then on.
type Grown struct{ Grown bool }

func (m *Grown) fields(c *codec) { c.flag(&m.Grown) }

// Position asks which parts of a file are no holes, from an offset on.
type Position struct {
	Handle uint64
	Off    int64
}

func (m *Position) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Off)
}

// Extents is its answer: all of them up to Until.
type Extents struct {
	Extents []Extent
	Until   int64
}

// Extent is a part of a file.
type Extent struct{ Off, Len int64 }

func (m *Extents) fields(c *codec) {
	list(c, &m.Extents, MaxExtents, func(e *Extent) {
		c.size(&e.Off)
		c.size(&e.Len)
	})
	c.size(&m.Until)
}

// Empty is a request or an answer without fields.
type Empty struct{}

func (*Empty) fields(*codec) {}
