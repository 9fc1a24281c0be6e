"""Real errors of real HTTP clients and mappers, or a loud skip where one is not installed."""

import importlib
from typing import Any

from tests.conftest import without_service


def library(name: str) -> Any:
    """Import a library that only tests use."""
    try:
        return importlib.import_module(name)
    except ImportError:
        without_service(f"pip install {name.partition('.')[0]}: duly must recognise its errors and objects")


def httpx2_error(status: int, headers: dict[str, str]) -> Exception:
    httpx2 = library("httpx2")
    response = httpx2.Response(status, headers=headers, request=httpx2.Request("GET", "http://localhost/"))
    return raised(response.raise_for_status)


def requests_error(status: int, headers: dict[str, str]) -> Exception:
    response = library("requests").Response()
    response.status_code = status
    response.headers.update(headers)
    return raised(response.raise_for_status)


def aiohttp_error(status: int, headers: dict[str, str]) -> Exception:
    aiohttp, multidict, yarl = library("aiohttp"), library("multidict"), library("yarl")
    url = yarl.URL("http://localhost/")
    many = multidict.CIMultiDictProxy(multidict.CIMultiDict(headers))
    request = aiohttp.RequestInfo(url, "GET", many, url)
    error: Exception = aiohttp.ClientResponseError(request, (), status=status, headers=many)
    return error


def botocore_error(status: int, headers: dict[str, str], code: str = "Whatever") -> Exception:
    lowered = {name.lower(): value for name, value in headers.items()}
    reply = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": lowered},
    }
    error: Exception = library("botocore.exceptions").ClientError(reply, "PutObject")
    return error


def urllib_error(status: int, headers: dict[str, str]) -> Exception:
    from email.message import Message
    from urllib.error import HTTPError

    message = Message()
    for name, value in headers.items():
        message[name] = value
    return HTTPError("http://localhost/", status, "no", message, None)


def raised(action: Any) -> Exception:
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")
