! A program in Fortran that knows nothing of tacc: every collective, on several types, in place and not, nonblocking and
! persistent, against what its own sums say. With mpi_f08 when it is compiled with -DMODERN; with persistent ones with
! -DPERSISTENT, by the names of Open MPI 4 if -DEXTENSION; with large counts, which mpi_f08 of MPI 4 has, if -DLARGE.
#ifdef MODERN
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
#ifdef EXTENSION
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Barrier_init MPIX_Barrier_init
#endif
program fortran
#ifdef MODERN
  use mpi_f08
#else
  use mpi
#endif
#if defined(EXTENSION) && defined(MODERN)
  use mpi_f08_ext
#elif defined(EXTENSION)
  use mpi_ext
#endif
  implicit none
  integer, parameter :: most = 1000
  integer :: rank, ranks, error, provided, turn, n, wrong
  HANDLE(MPI_Comm) :: comm, half

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
  wrong = 0
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  do turn = 1, 3
    n = merge(1, merge(7, most, turn == 2), turn == 1)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
    call reductions(n)
    call movements(n)
    call unequal(n)
    call later(n)
#ifdef PERSISTENT
    call again(n)
#endif
#ifdef LARGE
    call largely(int(n, MPI_COUNT_KIND))
#endif
    call MPI_Barrier(comm, error)
    call MPI_Comm_free(comm, error)
    call expect(comm == MPI_COMM_NULL, 'MPI_Comm_free')
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
  call halves()
  call MPI_Comm_free(half, error)
  call reached()
  call judged()
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0 .and. wrong == 0) print '(a)', 'all right'
  call MPI_Finalize(error)

contains

  subroutine expect(isRight, what)
    logical, intent(in) :: isRight
    character(*), intent(in) :: what
    if (isRight) return
    wrong = wrong + 1
    print '(a,i0,a,i0,2a)', 'rank ', rank, ' of ', ranks, ': wrong: ', what
  end subroutine

  integer function total()  ! of 1 to the number of ranks
    total = ranks * (ranks + 1) / 2
  end function

  subroutine reductions(n)
    integer, intent(in) :: n
    integer :: numbers(n), sums(n), parts(n * ranks), counts(ranks), i
    integer(8) :: longs(n), longSums(n)
    real(8) :: reals(n), realSums(n)
    real(4) :: shorts(n)
    complex(8) :: pairs(n), pairSums(n)
    logical :: truths(n), allTrue(n)
    numbers = [(rank + 1 + i, i = 1, n)]
    call MPI_Allreduce(numbers, sums, n, MPI_INTEGER, MPI_SUM, comm, error)
    call expect(error == MPI_SUCCESS .and. all(sums == [(total() + ranks * i, i = 1, n)]), 'MPI_Allreduce')
    sums = numbers
    call MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_INTEGER4, MPI_MAX, comm, error)
    call expect(all(sums == [(ranks + i, i = 1, n)]), 'MPI_Allreduce in place')
    reals = rank + 0.5d0
    call MPI_Allreduce(reals, realSums, n, MPI_REAL8, MPI_SUM, comm, error)
    call expect(all(realSums == total() - 0.5d0 * ranks), 'MPI_Allreduce of MPI_REAL8')
    call MPI_Reduce(reals, realSums, n, MPI_DOUBLE_PRECISION, MPI_MIN, ranks - 1, comm, error)
    if (rank == ranks - 1) call expect(all(realSums == 0.5d0), 'MPI_Reduce')
    if (rank == 0) call MPI_Reduce(MPI_IN_PLACE, reals, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, comm, error)
    if (rank /= 0) call MPI_Reduce(reals, realSums, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, comm, error)
    if (rank == 0) call expect(all(reals == total() - 0.5d0 * ranks), 'MPI_Reduce in place')
    shorts = 2
    call MPI_Allreduce(MPI_IN_PLACE, shorts, n, MPI_REAL, MPI_PROD, comm, error)
    call expect(all(shorts == 2.0 ** ranks), 'MPI_Allreduce of MPI_REAL')
    pairs = cmplx(rank, 1, 8)
    call MPI_Allreduce(pairs, pairSums, n, MPI_DOUBLE_COMPLEX, MPI_SUM, comm, error)
    call expect(all(pairSums == cmplx(total() - ranks, ranks, 8)), 'MPI_Allreduce of MPI_DOUBLE_COMPLEX')
    truths = rank /= 0
    call MPI_Allreduce(truths, allTrue, n, MPI_LOGICAL, MPI_LAND, comm, error)
    call expect(.not. any(allTrue), 'MPI_Allreduce of MPI_LOGICAL')
    longs = 2_8 ** 40 + rank
    call MPI_Scan(longs, longSums, n, MPI_INTEGER8, MPI_SUM, comm, error)
    call expect(all(longSums == (rank + 1) * 2_8 ** 40 + rank * (rank + 1) / 2), 'MPI_Scan')
    call MPI_Exscan(longs, longSums, n, MPI_INTEGER8, MPI_SUM, comm, error)
    if (rank > 0) call expect(all(longSums == rank * 2_8 ** 40 + rank * (rank - 1) / 2), 'MPI_Exscan')
    parts = [(i * (rank + 1), i = 1, n * ranks)]
    call MPI_Reduce_scatter_block(parts, sums, n, MPI_INTEGER, MPI_SUM, comm, error)
    call expect(all(sums == [((rank * n + i) * total(), i = 1, n)]), 'MPI_Reduce_scatter_block')
    counts = n
    call MPI_Reduce_scatter(parts, sums, counts, MPI_INTEGER, MPI_SUM, comm, error)
    call expect(all(sums == [((rank * n + i) * total(), i = 1, n)]), 'MPI_Reduce_scatter')
  end subroutine

  subroutine movements(n)
    integer, intent(in) :: n
    integer :: own(n), every(n * ranks), others(n * ranks), i, r
    own = rank
    if (rank == ranks - 1) own = 77
    call MPI_Bcast(own, n, MPI_INTEGER, ranks - 1, comm, error)
    call expect(all(own == 77), 'MPI_Bcast')
    own = rank
    call MPI_Allgather(own, n, MPI_INTEGER, every, n, MPI_INTEGER, comm, error)
    call expect(all(every == [((r, i = 1, n), r = 0, ranks - 1)]), 'MPI_Allgather')
    every = -1
    every(rank * n + 1:(rank + 1) * n) = rank
    call MPI_Allgather(MPI_IN_PLACE, n, MPI_INTEGER, every, n, MPI_INTEGER, comm, error)
    call expect(all(every == [((r, i = 1, n), r = 0, ranks - 1)]), 'MPI_Allgather in place')
    every = [((100 * rank + r, i = 1, n), r = 0, ranks - 1)]
    call MPI_Alltoall(every, n, MPI_INTEGER, others, n, MPI_INTEGER, comm, error)
    call expect(all(others == [((100 * r + rank, i = 1, n), r = 0, ranks - 1)]), 'MPI_Alltoall')
    call MPI_Gather(own, n, MPI_INTEGER, others, n, MPI_INTEGER, 0, comm, error)
    if (rank == 0) call expect(all(others == [((r, i = 1, n), r = 0, ranks - 1)]), 'MPI_Gather')
    call MPI_Scatter(others, n, MPI_INTEGER, own, n, MPI_INTEGER, 0, comm, error)
    call expect(all(own == rank), 'MPI_Scatter')
  end subroutine

  ! Rank r has n + r numbers.
  subroutine unequal(n)
    integer, intent(in) :: n
    integer :: counts(ranks), places(ranks), ownCounts(ranks), ownPlaces(ranks), r, i
    integer, allocatable :: own(:), every(:), others(:)
    counts = [(n + r, r = 0, ranks - 1)]
    places(1) = 0
    do r = 2, ranks
      places(r) = places(r - 1) + counts(r - 1)
    end do
    allocate (own(n + rank), every(sum(counts)))
    own = rank
    every = -1
    call MPI_Allgatherv(own, n + rank, MPI_INTEGER, every, counts, places, MPI_INTEGER, comm, error)
    call expect(all(every == [((r, i = 1, n + r), r = 0, ranks - 1)]), 'MPI_Allgatherv')
    every = -1
    call MPI_Gatherv(own, n + rank, MPI_INTEGER, every, counts, places, MPI_INTEGER, 0, comm, error)
    if (rank == 0) call expect(all(every == [((r, i = 1, n + r), r = 0, ranks - 1)]), 'MPI_Gatherv')
    own = -1
    call MPI_Scatterv(every, counts, places, MPI_INTEGER, own, n + rank, MPI_INTEGER, 0, comm, error)
    call expect(all(own == rank), 'MPI_Scatterv')
    ownCounts = n + rank
    ownPlaces = [(r * (n + rank), r = 0, ranks - 1)]
    allocate (others(ranks * (n + rank)))
    others = rank
    call MPI_Alltoallv(others, ownCounts, ownPlaces, MPI_INTEGER, every, counts, places, MPI_INTEGER, comm, error)
    call expect(all(every == [((r, i = 1, n + r), r = 0, ranks - 1)]), 'MPI_Alltoallv')
  end subroutine

  ! All nonblocking collectives at once, completed in every way.
  subroutine later(n)
    integer, intent(in) :: n
    HANDLE(MPI_Request) :: requests(16)
#ifdef MODERN
    type(MPI_Status) :: status, statuses(16)
#else
    integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 16)
#endif
    integer, asynchronous :: numbers(n), sums(n), least(n), scanned(n), before(n), first(n), others(n * ranks)
    integer, asynchronous :: block(n), blocks(n), every(n * ranks), turned(n * ranks), gathered(n * ranks)
    integer, asynchronous :: everyV(n * ranks), turnedV(n * ranks), gatheredV(n * ranks), own(n), ownV(n)
    integer, asynchronous :: counts(ranks), places(ranks)
    integer :: i, r, place, done, places16(16)
    logical :: flag
    call MPI_Barrier(comm, error)
    numbers = [(rank + 1 + i, i = 1, n)]
    others = [((100 * rank + r, i = 1, n), r = 0, ranks - 1)]
    first = rank
    counts = n
    places = [(r * n, r = 0, ranks - 1)]
    call MPI_Iallreduce(numbers, sums, n, MPI_INTEGER, MPI_SUM, comm, requests(1), error)
    call MPI_Ibcast(first, n, MPI_INTEGER, ranks - 1, comm, requests(2), error)
    call MPI_Ireduce(numbers, least, n, MPI_INTEGER, MPI_MIN, 0, comm, requests(3), error)
    call MPI_Iscan(numbers, scanned, n, MPI_INTEGER, MPI_MAX, comm, requests(4), error)
    call MPI_Iexscan(numbers, before, n, MPI_INTEGER, MPI_MAX, comm, requests(5), error)
    call MPI_Ireduce_scatter_block(others, block, n, MPI_INTEGER, MPI_MAX, comm, requests(6), error)
    call MPI_Ireduce_scatter(others, blocks, counts, MPI_INTEGER, MPI_MAX, comm, requests(7), error)
    call MPI_Iallgather(numbers, n, MPI_INTEGER, every, n, MPI_INTEGER, comm, requests(8), error)
    call MPI_Ialltoall(others, n, MPI_INTEGER, turned, n, MPI_INTEGER, comm, requests(9), error)
    call MPI_Igather(numbers, n, MPI_INTEGER, gathered, n, MPI_INTEGER, 0, comm, requests(10), error)
    call MPI_Iscatter(others, n, MPI_INTEGER, own, n, MPI_INTEGER, 0, comm, requests(11), error)
    call MPI_Iallgatherv(numbers, n, MPI_INTEGER, everyV, counts, places, MPI_INTEGER, comm, requests(12), error)
    call MPI_Ialltoallv(others, counts, places, MPI_INTEGER, turnedV, counts, places, MPI_INTEGER, comm, requests(13), &
      error)
    call MPI_Igatherv(numbers, n, MPI_INTEGER, gatheredV, counts, places, MPI_INTEGER, 0, comm, requests(14), error)
    call MPI_Iscatterv(others, counts, places, MPI_INTEGER, ownV, n, MPI_INTEGER, 0, comm, requests(15), error)
    call MPI_Ibarrier(comm, requests(16), error)
    call MPI_Wait(requests(16), MPI_STATUS_IGNORE, error)
    call expect(requests(16) == MPI_REQUEST_NULL .and. error == MPI_SUCCESS, 'MPI_Wait of MPI_Ibarrier')
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(1), flag, status, error)
    end do
    call expect(all(sums == [(total() + ranks * i, i = 1, n)]), 'MPI_Iallreduce')
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(requests(2), flag, status, error)  ! Open MPI 4.1 needs one
    end do
    call expect(requests(2) /= MPI_REQUEST_NULL, 'MPI_Request_get_status')
    call MPI_Waitany(2, requests(1:2), place, status, error)
    call expect(place == 2 .and. all(first == ranks - 1), 'MPI_Waitany of MPI_Ibcast')
    place = MPI_UNDEFINED
    flag = .false.
    do while (.not. flag)
      call MPI_Testany(3, requests(1:3), place, flag, MPI_STATUS_IGNORE, error)
    end do
    call expect(place == 3, 'MPI_Testany')
    if (rank == 0) call expect(all(least == numbers), 'MPI_Ireduce')
    done = 0
    do while (done == 0)
      call MPI_Testsome(2, requests(3:4), done, places16, statuses, error)
    end do
    call expect(done == 1 .and. places16(1) == 2 .and. all(scanned == numbers), 'MPI_Testsome of MPI_Iscan')
    call MPI_Waitsome(5, requests(1:5), done, places16, MPI_STATUSES_IGNORE, error)
    call expect(done == 1 .and. places16(1) == 5, 'MPI_Waitsome of MPI_Iexscan')
    if (rank > 0) call expect(all(before == numbers - 1), 'MPI_Iexscan')
    call MPI_Waitsome(5, requests(1:5), done, places16, MPI_STATUSES_IGNORE, error)
    call expect(done == MPI_UNDEFINED, 'MPI_Waitsome of nothing')
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(7, requests(1:7), flag, statuses, error)
    end do
    call expect(all(block == 100 * (ranks - 1) + rank) .and. all(blocks == block), 'MPI_Testall of reduce-scatters')
    call MPI_Waitall(16, requests, MPI_STATUSES_IGNORE, error)
    call MPI_Waitall(0, requests, statuses, error)
    call expect(error == MPI_SUCCESS, 'MPI_Waitall of nothing')
    do i = 1, 16
      call expect(requests(i) == MPI_REQUEST_NULL, 'MPI_Waitall')
    end do
    call expect(all(every == [((r + 1 + i, i = 1, n), r = 0, ranks - 1)]) .and. all(everyV == every), 'MPI_Iallgather(v)')
    call expect(all(turned == [((100 * r + rank, i = 1, n), r = 0, ranks - 1)]) .and. all(turnedV == turned), &
      'MPI_Ialltoall(v)')
    if (rank == 0) call expect(all(gathered == every) .and. all(gatheredV == every), 'MPI_Igather(v)')
    call expect(all(own == rank) .and. all(ownV == rank), 'MPI_Iscatter(v)')
  end subroutine

#ifdef PERSISTENT
  subroutine again(n)
    integer, intent(in) :: n
    HANDLE(MPI_Request) :: requests(4)
    integer, asynchronous :: numbers(n), sums(n), first(n), others(n * ranks), turned(n * ranks)
    integer, asynchronous :: counts(ranks), places(ranks)
    integer :: start, i, r
    counts = n
    places = [(r * n, r = 0, ranks - 1)]
    call MPI_Allreduce_init(numbers, sums, n, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, requests(1), error)
    call MPI_Bcast_init(first, n, MPI_INTEGER, 0, comm, MPI_INFO_NULL, requests(2), error)
    call MPI_Alltoallv_init(others, counts, places, MPI_INTEGER, turned, counts, places, MPI_INTEGER, comm, &
      MPI_INFO_NULL, requests(3), error)
    call MPI_Barrier_init(comm, MPI_INFO_NULL, requests(4), error)
    do start = 1, 3
      numbers = start * (rank + 1)
      first = merge(start, -1, rank == 0)
      others = [((start + 100 * rank + r, i = 1, n), r = 0, ranks - 1)]
      call MPI_Start(requests(4), error)
      call MPI_Startall(3, requests(1:3), error)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
      call expect(all(sums == start * total()), 'MPI_Allreduce_init')
      call expect(all(first == start), 'MPI_Bcast_init')
      call expect(all(turned == [((start + 100 * r + rank, i = 1, n), r = 0, ranks - 1)]), 'MPI_Alltoallv_init')
    end do
    do i = 1, 4
      call MPI_Request_free(requests(i), error)
      call expect(requests(i) == MPI_REQUEST_NULL, 'MPI_Request_free')
    end do
  end subroutine
#endif

#ifdef LARGE
  ! The kind of the counts says which function of C it becomes.
  subroutine largely(n)
    integer(MPI_COUNT_KIND), intent(in) :: n
    integer(MPI_COUNT_KIND) :: counts(ranks)
    integer(MPI_ADDRESS_KIND) :: places(ranks)
    integer :: numbers(n), sums(n), every(n * ranks), i
    type(MPI_Request) :: request
    numbers = rank + 1
    call MPI_Allreduce(numbers, sums, n, MPI_INTEGER, MPI_SUM, comm, error)
    call expect(all(sums == total()), 'MPI_Allreduce of a large count')
    call MPI_Iallreduce(numbers, sums, n, MPI_INTEGER, MPI_MAX, comm, request, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    call expect(all(sums == ranks), 'MPI_Iallreduce of a large count')
    counts = n
    places = [((ranks - i) * n, i = 1, ranks)]
    every = -1
    call MPI_Allgatherv(numbers, n, MPI_INTEGER, every, counts, places, MPI_INTEGER, comm, error)
    do i = 1, ranks
      call expect(all(every(places(i) + 1:places(i) + n) == i), 'MPI_Allgatherv of large counts')
    end do
  end subroutine
#endif

  subroutine halves()
    integer :: one
    one = 1
    call MPI_Allreduce(MPI_IN_PLACE, one, 1, MPI_INTEGER, MPI_SUM, half, error)
    call expect(one == (ranks + 1 - mod(rank, 2)) / 2, 'MPI_Allreduce of a half')
  end subroutine

  ! Memory of MPI_Alloc_mem, which other ranks reach.
  subroutine reached()
    use, intrinsic :: iso_c_binding
    integer, parameter :: many = 100000
    integer, pointer :: own(:), sums(:)
    type(c_ptr) :: place
    integer :: i
    call MPI_Alloc_mem(4_MPI_ADDRESS_KIND * many, MPI_INFO_NULL, place, error)
    call c_f_pointer(place, own, [many])
    call MPI_Alloc_mem(4_MPI_ADDRESS_KIND * many, MPI_INFO_NULL, place, error)
    call c_f_pointer(place, sums, [many])
    own = [(rank + i, i = 1, many)]
    call MPI_Allreduce(own, sums, many, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call expect(all(sums == [(total() - ranks + ranks * i, i = 1, many)]), 'MPI_Allreduce of MPI_Alloc_mem')
    call MPI_Free_mem(own, error)
    call expect(error == MPI_SUCCESS, 'MPI_Free_mem')
    call MPI_Free_mem(sums, error)
  end subroutine

  ! What MPI has to judge goes to it, in the words of Fortran.
  subroutine judged()
    integer :: own, result
    HANDLE(MPI_Op) :: op
    own = rank
    call MPI_Op_create(larger, .true., op, error)
    call MPI_Allreduce(own, result, 1, MPI_INTEGER, op, MPI_COMM_WORLD, error)
    call expect(result == ranks - 1, 'MPI_Allreduce with an operation of the program')
    call MPI_Op_free(op, error)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
    call MPI_Bcast(own, 1, MPI_INTEGER, ranks, MPI_COMM_WORLD, error)
    call expect(error /= MPI_SUCCESS, 'MPI_Bcast from a rank that is not there')
  end subroutine

#ifdef MODERN
  subroutine larger(from, into, count, kind)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: from, into
    integer :: count
    type(MPI_Datatype) :: kind
    integer, pointer :: one(:), other(:)
    call c_f_pointer(from, one, [count])
    call c_f_pointer(into, other, [count])
    if (kind == MPI_INTEGER) other = max(one, other)
  end subroutine
#else
  subroutine larger(from, into, count, kind)
    integer :: count, kind, from(count), into(count)
    if (kind == MPI_INTEGER) into = max(from, into)
  end subroutine
#endif
end program
