"""Dependencies of the page's routes: the review that the path names and its reader, or the error if there is none."""

from typing import Annotated

from fastapi import Depends, Form, Request
from starlette.exceptions import HTTPException

from linker.base.errors import InputError
from linker.review.project import Project, Workspace
from linker.server.page.sessions import Session
from linker.server.shelf import Opened, Shelf


def shelf_of(request: Request) -> Shelf:
    """Return the application's open indexes and reviews."""
    shelf: Shelf = request.app.state.shelf
    return shelf


def workspace_of(request: Request) -> Workspace:
    """Return the folder of reviews that the page shows."""
    workspace: Workspace = request.app.state.workspace
    return workspace


def project_of(request: Request, project: str) -> Project:
    """Return the project that the path names (`{project}`), or answer 404. Raises InputError if it is unreadable."""
    try:
        found = workspace_of(request).project(project)
    except InputError as e:
        raise HTTPException(404, str(e)) from None
    if found.problem:
        raise InputError(found.problem)
    return found


def opened_of(request: Request, project: Annotated[Project, Depends(project_of)]) -> Opened:
    """Return the review named in the path; for a project without an index, show its next step."""
    if not project.ready:
        raise NotReadyError(project)
    return shelf_of(request).review(project)


class NotReadyError(Exception):
    """Raised if a project has no index yet, so that only its upload page can be shown."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.name)
        self.project = project


def reader_of(request: Request) -> Session:
    """Return the session of a reader who has a name, since unnamed readers could not be distinguished."""
    session: Session = request.state.session
    if not session.reviewer:
        raise NamelessError
    return session


class NamelessError(Exception):
    """Raised if somebody without a name wants to judge."""


Reader = Annotated[Session, Depends(reader_of)]
InProject = Annotated[Project, Depends(project_of)]
InReview = Annotated[Opened, Depends(opened_of)]
Short = Annotated[str, Form(max_length=2000)]  # a field of a form
