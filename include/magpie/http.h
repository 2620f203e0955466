// http.h: HTTP/1.1, server and client. Link with magpie::http.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/http/client.h>
#include <magpie/http/error.h>
#include <magpie/http/headers.h>
#include <magpie/http/middleware.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>
#include <magpie/http/server.h>
