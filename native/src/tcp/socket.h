#ifndef OMI_SOCKET_H
#define OMI_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Sockets as this library uses them: non-blocking, closed on exec, TCP_NODELAY, kept alive, never a SIGPIPE. */

/** Listen on host:port (port 0: any free one). Returns the fd and the port bound, or OM_ERR_BUS_TCP_BIND. */
int omi_socket_listen(const char *host, uint16_t port, int backlog, uint16_t *port_out);

/** Accept one connection: its fd, or -1 with errno set (EAGAIN: none waits). `peer` (may be NULL) gets "address:port".
 */
int omi_socket_accept(int listen_fd, char *peer, size_t peer_size);

/**
 * Start connecting. Returns the fd (omi_socket_connected() tells the outcome), or OM_ERR_BUS_TCP_CONNECT. A host may
 * have several addresses ("localhost" has two): attempt 0, 1, ... takes them in turn; *addresses (may be NULL) says how
 * many.
 */
int omi_socket_connect_start(const char *host, uint16_t port, uint32_t attempt, uint32_t *addresses);

/** Connect, trying every address of the host. Returns the fd, or OM_ERR_BUS_TCP_CONNECT. */
int omi_socket_connect(const char *host, uint16_t port, int64_t timeout_ns);

/** After connect_start: 1 = the connection stands, 0 = not yet after timeout_ns, or OM_ERR_BUS_TCP_CONNECT. */
int omi_socket_connected(int fd, int64_t timeout_ns);

/** Sleep until the socket can be read (or written): 1, or 0 after timeout_ns (< 0: no limit), or OM_ERR_BUS_TCP_IO. */
int omi_socket_wait(int fd, bool writable, int64_t timeout_ns);

/** send() without SIGPIPE, repeated on EINTR: bytes taken, 0 when the socket is full, -1 when the connection is lost.
 */
ssize_t omi_socket_send(int fd, const void *data, size_t size);

/**
 * Send file bytes [offset, offset + size), which are also mapped at `data`: by sendfile() where that pays, which spares
 * a copy. Returns as omi_socket_send().
 */
ssize_t omi_socket_send_file(int fd, int file_fd, uint64_t offset, const void *data, size_t size);

/** recv(), repeated on EINTR: bytes, 0 when none wait, -1 when the peer has closed or the connection is lost. */
ssize_t omi_socket_recv(int fd, void *data, size_t size);

/**
 * Close such that the peer still gets what was sent: unread input would turn the close into a reset, which discards
 * data on its way. Reads at most a little: a peer that keeps sending gets the reset.
 */
void omi_socket_close_gently(int fd);

#endif
